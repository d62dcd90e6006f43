"""Whose turn it is: leases of workers, messages to them, and what sets both right after a crash."""
