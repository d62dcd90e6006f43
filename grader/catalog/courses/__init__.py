"""Courses: their files, where they come from, and new ones to start from."""
