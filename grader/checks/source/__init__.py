"""What a submission says: its text, parsed once, and the questions that the source halves of rules ask it.

Nothing is executed here, and nothing is known of a run.
"""
