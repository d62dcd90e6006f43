"""Data sets, samplers, loaders, orders and shares: which samples each rank is given, in which epoch."""
