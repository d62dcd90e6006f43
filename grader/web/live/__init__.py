"""Watching attempts while they wait and run: one query of the store a second, however many people watch."""
