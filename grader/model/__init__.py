"""The nouns of the grader as frozen dataclasses, with no behaviour beyond their own."""
