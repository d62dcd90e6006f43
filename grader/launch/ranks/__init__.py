"""One rank: what is set up before its script begins, what it sends, and how it calls the supervisor."""
