"""Accounts, what opens them, who vouches for them, and what is kept of a person."""
