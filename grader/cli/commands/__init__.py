"""One module per command, nothing else; found by folder. Each has NAME, ORDER, add_arguments and run."""
