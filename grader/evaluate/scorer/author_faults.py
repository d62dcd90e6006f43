"""Calls what a task's author wrote, and tells where it failed: in which line of evaluate.py, and with what."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

_LIBRARIES = ("<frozen", sys.prefix, sys.base_prefix)


class TaskFaultError(Exception):
    """The task's own evaluate.py failed."""


def author_call(call: Callable[[], Any], what: str) -> Any:
    """What a call of the author's code returns; `what`: what is called, for the error.

    Raises:
        TaskFaultError: it failed; names file and line.
        MemoryError: it took more memory than the process may.
    """
    try:
        return call()
    except MemoryError:
        raise
    except BaseException as error:
        # A task's code may do anything, sys.exit included.
        frames = traceback.extract_tb(error.__traceback__)
        # What a library of theirs stumbled over, they wrote further out.
        frame = next((f for f in reversed(frames) if not f.filename.startswith(_LIBRARIES)), frames[-1])
        place = f"{Path(frame.filename).name}:{frame.lineno}"
        raise TaskFaultError(f"{what} failed at {place}: {type(error).__name__}: {error}") from error
