"""Asking a grading service over HTTP: its address, a connection that shows a token, and what an answer's fault means.

For those who hand in and for workers alike; what is asked is theirs.
"""
