"""Python's search for garbage, put off where nearly all that is made stays in use."""

from __future__ import annotations

import atexit
import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collections() -> Iterator[None]:
    """While modules are imported or trees are read.

    Every node of a tree is alive while rules read it: looking for garbage among them costs a fifth of the time and
    finds nothing.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def leave_to_the_system() -> None:
    """What is alive when this process ends is not looked through once more: a tenth of the time of a short command."""
    atexit.register(gc.freeze)
