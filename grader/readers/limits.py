"""What a piece of work may take, and what is said of one that took more."""

from __future__ import annotations

from dataclasses import dataclass

from grader.errors import InfraError


@dataclass(frozen=True, slots=True)
class ReadingLimits:
    """Of one piece of work.

    Attributes:
        cpu_s: seconds of processor time, which a busy machine does not shorten.
        wall_s: seconds that whoever asks waits at most, for a reader and for its answer; the machine is busy past them.
        memory_bytes: beyond what the reader has before.
        answer_bytes: of what it gives back.
    """

    cpu_s: float
    wall_s: float
    memory_bytes: int = 2 << 30
    answer_bytes: int = 8 << 20


class OverLimitError(Exception):
    """The work took more than it may, or ended its reader.

    Attributes:
        limit: what was not enough, such as `3 s` or `2,048 MiB of memory`; at: what was being read, "" where unsaid.
    """

    def __init__(self, limit: str, at: str = "") -> None:
        super().__init__(f"{at or 'it'} could not be read within {limit}")
        self.limit = limit
        self.at = at


class BusyError(InfraError):
    """The machine has too much else to do just now; nothing is known to be wrong with what was to be read."""
