"""What is handed in, within which limits, and the attempts that come of it."""
