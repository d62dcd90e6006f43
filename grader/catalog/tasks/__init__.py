"""Tasks: their files and tables, where they lie, and new ones to start from."""
