"""One's own account: words, mail, ways to sign in, and what is kept about one."""
