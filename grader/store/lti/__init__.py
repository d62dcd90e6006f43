"""Learning platforms: their courses and people as ours, launches from them, and grades for them."""
