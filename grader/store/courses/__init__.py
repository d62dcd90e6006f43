"""Courses, who takes part in them, and on what terms they set tasks."""
