"""What a run left, read as a stranger's: weights, tables, numbers."""
