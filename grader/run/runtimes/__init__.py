"""One module per runtime, nothing else; found by folder."""
