"""The text as a syntax tree: its nodes and places, what keeps it from being read, and edits of it."""
