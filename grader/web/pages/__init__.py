"""Pages for people, server-rendered, in rooms. Every module of a room has a `router`, found by where it lies."""
