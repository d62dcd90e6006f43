"""Which device each rank and each tensor is put on."""
