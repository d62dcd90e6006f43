"""What is read and written: checkpoints, paths, who writes them, and where a script reaches further than its files."""
