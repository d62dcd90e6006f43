"""One module per rule, nothing else; the file name is the code and the name."""
