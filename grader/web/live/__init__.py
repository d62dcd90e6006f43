"""Watching attempts while they wait and run: one look at the store a second, however many people watch."""
