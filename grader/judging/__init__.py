"""Judge a run from the files it left: read its evidence once, then decide, without running anything.

`stored_evidence` reads, `judge` decides and is pure, `attempt_folder` knows where an attempt lies on disk.
"""
