"""Score what a run left: weights on hidden data, time against calibration, points by the rubric.

Never imports a submission; weights are loaded as weights only.
"""
