"""Networks and their wrappers: what is inside, what becomes of it, in which mode it runs, and who goes around it."""
