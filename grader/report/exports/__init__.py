"""One module per format that a command writes beside what it prints, nothing else; see `grader.report.export`."""
