"""Jobs of the trials, as learners might write them: they import nothing of ours, and run as submissions."""
