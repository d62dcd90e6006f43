"""How ranks come into being: forked, started anew, by torchrun, or by the script itself."""
