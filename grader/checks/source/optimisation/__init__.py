"""Optimizers, learning rates and schedules: how long they are, whose they are, and what ends the training."""
