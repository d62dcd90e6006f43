"""Tries on this host's own GPUs what judging asks of them, by real jobs of the runtime that submissions run in.

Nothing but a real run shows what a driver, an engine and its settings come to. What is found is written down whole, so
that it can be sent to whoever looks after the grader.
"""
