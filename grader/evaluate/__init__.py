"""Measure what a run left behind, hold it against targets, and turn findings and measures into a verdict and points.

The scorer (`scorer`, `artifacts`, `reported`) is a process of its own that never imports a submission; `score` is
pure; `calibration` stores what time is held against. Nothing here runs a submission.
"""
