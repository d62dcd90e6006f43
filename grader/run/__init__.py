"""Launch a submission in a runtime and bring back what it left: record, trace, logs, artifacts.

Never judges; never imports a check.
"""
