"""Which submissions of a class look alike: a hint for a person who reads both, never a finding or a verdict.

`compare` does the comparing with copydetect, `__main__` is the process that it runs in, `asking` starts that process.
Learners never see any of it.
"""
