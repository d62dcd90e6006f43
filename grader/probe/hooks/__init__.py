"""How hooks get into a running Python, and what all of them need: places in the script, counters, samples of steps."""
