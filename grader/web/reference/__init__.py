"""The programming interface as a page: each operation with who may, what it takes, and an example that works."""
