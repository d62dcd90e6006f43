"""Steps and their learning rates: when ranks took them, how long they were, where schedules ended."""
