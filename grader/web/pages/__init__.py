"""Pages for people, server-rendered. Every module here has a `router`, found by folder; nothing else lies here."""
