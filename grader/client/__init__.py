"""Handing in from a terminal or a CI job: the service's programming interface, and nothing else of this package.

Judges nothing, keeps nothing but where one is signed in, and never hands in twice: each request to hand in has a name
of its own that it keeps through all its tries.
"""

from grader.client.answers import (
    AttemptAnswer,
    ChangesAnswer,
    EventAnswer,
    ReadingAnswer,
    SubmissionAnswer,
    TaskAnswer,
)
from grader.client.credentials import Key, forget, keep, known, sign_in
from grader.client.progress import follow
from grader.client.service import Service

__all__ = [
    "AttemptAnswer",
    "ChangesAnswer",
    "EventAnswer",
    "Key",
    "ReadingAnswer",
    "Service",
    "SubmissionAnswer",
    "TaskAnswer",
    "follow",
    "forget",
    "keep",
    "known",
    "sign_in",
]
