"""The reports' words: for verdicts, numbers, endings, facts and praise."""
