"""Counts over a whole run, as a rank told them at its end."""

from __future__ import annotations

from grader.model.trace import RankTrace


def end_count(rank: RankTrace, name: str) -> int | None:
    """A whole number of the END event (see `probe.events`); None where it was not told."""
    told = next((event.fields.get(name) for event in rank.events("end")), None)
    return told if isinstance(told, int) else None


def gradients_computed(rank: RankTrace) -> int:
    """Backward passes of a rank, and gradients that it asked for; 0 where nothing was told."""
    return (end_count(rank, "backwards") or 0) + (end_count(rank, "derivatives") or 0)
