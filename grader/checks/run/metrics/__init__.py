"""Validation as it ran, and what was reported of it, beside what the scorer measured."""
