"""A task as an archive that another grading platform runs by itself, without a service of ours.

The archive holds this very grader, the task without its solutions, and what the platform starts. What it says is
written by `grader.report`, in the platform's own format.
"""
