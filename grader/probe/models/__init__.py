"""Trained models from wrapping to the end: their passes, modes, weights, layouts and memory."""
