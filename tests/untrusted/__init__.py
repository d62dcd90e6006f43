"""Whatever a learner writes, reading it hurts nobody: hostile texts, expressions, readers, and fuzzers for each."""
