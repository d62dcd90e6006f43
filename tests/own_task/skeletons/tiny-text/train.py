"""Where learners start."""
