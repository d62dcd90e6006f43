"""Uploads: from what a browser or a program sent to a submission, or to one sentence that says what to do instead.

Nothing is unpacked to disk, nothing is run, and no name that was sent ever becomes a path of ours.
"""
