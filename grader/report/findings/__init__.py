"""Findings as a reader meets them: sorted, quoted, with what they cost and how to mend them."""
