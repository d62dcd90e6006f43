"""One module per known way in which a run ends badly; see `grader.checks.diagnosis` for their shape. Nothing else."""
