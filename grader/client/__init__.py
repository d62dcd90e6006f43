"""Handing in from a terminal or a CI job: the service's programming interface, and nothing else of this package.

Judges nothing, keeps nothing but where one is signed in, and never hands in twice: each request to hand in has a name
of its own that it keeps through all its tries.
"""

from grader.client.answers import Attempt, Event, Handed, Task
from grader.client.doors import Key, forget, keep, known, sign_in
from grader.client.following import follow
from grader.client.service import Service

__all__ = [
    "Attempt",
    "Event",
    "Handed",
    "Key",
    "Service",
    "Task",
    "follow",
    "forget",
    "keep",
    "known",
    "sign_in",
]
