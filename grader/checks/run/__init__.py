"""What a run showed: ledger, steps, validation, endings, put together from trace and record for the rules to judge.

It may look lines up in the text, and decides nothing itself.
"""
