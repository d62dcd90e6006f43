"""Whether so few submissions are coming in that there is time to check a script's source."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

# A check takes some milliseconds of the interpreter, as long as taking two more submissions.
_FEW = 4


class SubmissionLoad:
    """Counts the submissions that are being taken just now, in this process's one event loop."""

    def __init__(self) -> None:
        self._now = 0

    @contextmanager
    def counting(self) -> Generator[None]:
        """While one is taken."""
        self._now += 1
        try:
            yield
        finally:
            self._now -= 1

    def is_low(self) -> bool:
        """Whether few are being taken."""
        return self._now <= _FEW
