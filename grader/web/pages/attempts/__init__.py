"""Handing in, watching, and reading what came of it."""
