"""What attempts count for, and what people add to that: standings, comments, decisions, certificates."""
