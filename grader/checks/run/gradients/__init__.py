"""What ranks stepped on: whose samples it came of, whether it was exchanged, and when it was cleared."""
