"""One module per command, nothing else; see `grader.cli.command` for their shape."""
