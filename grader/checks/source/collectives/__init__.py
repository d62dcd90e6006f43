"""The process group from beginning to end, what ranks do together in it, and what becomes of the results."""
