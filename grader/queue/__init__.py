"""Hints on their way to workers: Celery on Redis, or on a folder of this machine.

A hint says that something waits which needs this or that; what it is, whose turn it is and what becomes of it is in
the database alone (`grader.store`). So a hint may be lost, doubled or late, and nothing is wrong afterwards. Knows no
store.
"""
