"""How runs end: who failed first, who left, and where the others stood."""
