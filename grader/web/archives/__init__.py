"""Archives that are packed while they are sent: all that a class handed in, and all that is kept about one person."""
