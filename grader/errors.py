"""Who is to blame, as types: the caller, the task's author, or us. A learner never is.

What a submission does is data (findings, endings, verdicts) and has no exception here. Each error
carries the exit code its command ends with, so that the command line needs no table.
"""

from __future__ import annotations

EXIT_ACCEPTED = 0
EXIT_NOT_ACCEPTED = 1
EXIT_USAGE = 2
EXIT_TASK_ERROR = 3
EXIT_INFRA_ERROR = 4


class GraderError(Exception):
    """Base of the three; its text is a message to a person and says what to do next."""

    exit_code = EXIT_INFRA_ERROR


class UsageError(GraderError):
    """The command, a path or a submission's form is wrong; nothing was run, nothing is left behind."""

    exit_code = EXIT_USAGE


class TaskError(GraderError):
    """The task's author has to mend a file of the task."""

    exit_code = EXIT_TASK_ERROR


class InfraError(GraderError):
    """The machine or the grader failed; never counted as an attempt, safe to try again."""

    exit_code = EXIT_INFRA_ERROR
