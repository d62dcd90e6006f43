"""Standard output whose reader may leave early (`| head`): the command goes on to its end, and its exit code stands."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def unread_is_no_fault() -> Iterator[None]:
    """Print as far as anybody reads; what comes after the block runs in any case."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        print_to_nobody()


def print_to_nobody() -> None:
    """From now on what is printed goes nowhere, and is no error."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
