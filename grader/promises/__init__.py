"""What tasks promise, and whether it is kept: their own submissions judged and compared with folder and comments.

Knows tasks and the pipeline; prints and serves nothing.
"""
