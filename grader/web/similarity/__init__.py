"""Which submissions of a class look alike: a hint for a person who reads both, never a finding or a verdict.

`fingerprints` compares by copydetect, `__main__` is the process that it runs in, `comparison_process` starts it.
Learners never see any of it.
"""
