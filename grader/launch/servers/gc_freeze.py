"""Imports by a process that others are forked from: made once, kept for good, shared by all children."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def gc_frozen() -> Generator[None]:
    """What is made within is never looked through by the garbage collector, neither meanwhile nor later.

    torch makes some 350,000 objects, nearly all of which stay: looking for garbage among them again and again takes a
    fifth of the time that importing takes, and looking later, in a child, would copy the pages that it shares.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
    gc.collect()
    gc.freeze()
