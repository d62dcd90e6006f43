"""Backward passes, what losses are made of, and the gradients between two steps."""
