"""Ranks that an exception stopped at a line which needs the process group, when they had taken it down.

Where there never was a group is another matter, and which line to move is the text's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from grader.checks.evidence import Evidence
from grader.checks.phrases import places
from grader.model.call_site import Site
from grader.model.finding import Location
from grader.model.run import Frame

NO_GROUP = re.compile(
    r"Default process group has not been initialized"
    r"|process group (is|was) not initialized"
    r"|Process group has not been initialized"
)
"""What PyTorch says where a line needs a process group and there is none."""


@dataclass(frozen=True, slots=True)
class LateStop:
    """A rank that stopped at a line which needs the process group, when it had taken it down.

    Attributes:
        rank: its number. place: that line; reached: the submission's lines that led there, innermost first.
        ended: where it took the group down, None where a library did.
    """

    rank: int
    place: Frame | None
    reached: tuple[Location, ...]
    ended: Site | None


def stopped_without_group(evidence: Evidence) -> tuple[LateStop, ...]:
    """Ranks that an exception stopped because their group was over."""
    traces = {r.rank: r for r in evidence.trace.ranks}
    found = []
    for record in evidence.record.ranks:
        groups = traces[record.rank].groups if record.rank in traces else ()
        if record.failure is None or not NO_GROUP.search(record.failure.message):
            continue
        if groups and groups[-1].op == "destroy":
            own = [f for f in record.failure.frames if f.in_submission]
            found.append(LateStop(record.rank, own[0] if own else None, tuple(places(own)), groups[-1].site))
    return tuple(found)
