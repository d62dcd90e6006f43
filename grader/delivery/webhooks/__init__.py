"""Webhooks: what a receiver is told, how it knows that we told it, and the way there."""
