"""Names of queues: one for each need of devices and each lane, so that no hint wakes a worker that cannot serve it.

Who is next is decided when an attempt is claimed, never by the order of hints.
"""

from __future__ import annotations

from collections.abc import Sequence

HINT = "grader.hint"
"""Name of the one kind of message."""
_PREFIX = "grader"


def queue_name(need: str, lane: str) -> str:
    """The queue for hints about attempts with this need (`cpu`, `gpu2`, …) in this lane."""
    return f"{_PREFIX}.{need}.{lane}"


def queue_names(needs: Sequence[str], lanes: Sequence[str]) -> tuple[str, ...]:
    """The queues that a worker listens to: those of the first lane first."""
    return tuple(queue_name(need, lane) for lane in lanes for need in needs)
