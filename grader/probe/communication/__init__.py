"""Process groups, collectives and messages: which, how many, from which line, and which never ended."""
