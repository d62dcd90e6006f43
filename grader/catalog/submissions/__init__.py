"""Submissions: what learners hand in, and those by which a task proves itself."""
