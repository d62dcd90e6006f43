"""What a rule answers, held against what it has to be, in the line that makes it.

A report of all rules must not fail over one: an answer that can't be told is its author's error, with file and line.
"""

from __future__ import annotations

import json
from typing import Any


def must_be(kind: type, *answers: object) -> None:
    """Raises TypeError where an answer is of another kind."""
    for answer in answers:
        if not isinstance(answer, kind):
            raise TypeError(f"it answered {answer!r:.60}, which is no {kind.__name__}")


def check_texts(**fields: Any) -> None:
    """Raises TypeError where a field is no text."""
    for name, value in fields.items():
        if not isinstance(value, str):
            raise TypeError(f"`{name}` is {value!r:.60}, which is no text")


def check_tuples(**fields: tuple[Any, type]) -> None:
    """Fields with the kind of their members; raises TypeError where one is no tuple of nothing else."""
    for name, (value, kind) in fields.items():
        if not isinstance(value, tuple) or not all(isinstance(one, kind) for one in value):
            raise TypeError(f"`{name}` is {value!r:.60}, which is no tuple of {kind.__name__}")


def check_data(**fields: Any) -> None:
    """Raises TypeError or ValueError where a field is nothing that JSON can hold."""
    for name, value in fields.items():
        if not isinstance(value, dict):
            raise TypeError(f"`{name}` is {value!r:.60}, which is no dictionary")
        json.dumps(value)
