"""From `backward` to the optimizer step: accumulation, averages, exchanges, clips, and what is lost on the way."""
