"""Which samples each rank was given, in which epoch: passes, shares, orders, and what models were really fed."""
