"""Mails: what they say, how they are made, and the server that takes them."""
