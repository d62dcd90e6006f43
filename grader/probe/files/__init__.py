"""Files that a rank opens, checkpoints that it writes and loads, data sets that it downloads."""
