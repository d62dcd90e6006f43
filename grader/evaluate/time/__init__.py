"""How long a run took, how fast it trained, and what that is held against."""
