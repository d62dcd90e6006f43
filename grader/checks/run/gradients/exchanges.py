"""Whether ranks exchanged anything that an update could have been made of."""

from __future__ import annotations

from grader.checks.run.endings.end_counts import end_count
from grader.model.call_site import Site
from grader.model.trace import RankTrace, Wrap

MEETINGS = ("barrier", "monitored_barrier")
"""Collectives that carry nothing."""


def wrapped_alone(rank: RankTrace) -> tuple[Wrap, ...]:
    """Wrappers in a group that has this rank and no other: they average over one."""
    return tuple(wrap for wrap in rank.wraps if wrap.replicas == (rank.rank,) and wrap.parts is None)


def sent_nothing(rank: RankTrace) -> bool:
    """True where nothing can have averaged: no wrapper over ranks, and fewer collectives than optimizer steps."""
    told = end_count(rank, "sequence")
    if told is None or len(wrapped_alone(rank)) < len(rank.wraps):
        return False
    by_name: dict[tuple[str, Site | None], int] = {}
    for call in rank.collectives:
        by_name[call.name, call.site] = max(call.n, by_name.get((call.name, call.site), 0))
    # Meetings carry nothing; a barrier may count as more than one collective below, never as less.
    meetings = sum(n for (name, _), n in by_name.items() if name in MEETINGS)
    return max(told, sum(by_name.values())) - meetings < len(rank.steps)
