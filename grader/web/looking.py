"""Whether there is time to look at a script's source while others wait for their receipts."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

# Looking takes some milliseconds of the interpreter, as long as taking two more submissions.
_FEW = 4


class Looking:
    """Counts the submissions that are being taken just now, in this process's one event loop."""

    def __init__(self) -> None:
        self._now = 0

    @contextmanager
    def taking(self) -> Generator[None]:
        """While one is taken."""
        self._now += 1
        try:
            yield
        finally:
            self._now -= 1

    def has_time(self) -> bool:
        """Whether few are being taken."""
        return self._now <= _FEW
