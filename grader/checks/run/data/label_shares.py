"""Whether the ranks' parts of a step hold other classes than each other: shares that were cut from an order by label.

The gradient of all ranks together is that of the same batch, but what a rank works out of its own part, such as the
statistics of BatchNorm, is of some classes alone. Needs batches that would have all classes, were they mixed.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from grader.checks.run.data.loader_passes import passes_of
from grader.checks.run.models.parallel_layout import Layout
from grader.model.trace import RankTrace, Trace

_FEWEST_STEPS = 8
_MOSTLY = 0.9
_FEWEST_CLASSES = 4
_ENOUGH = 3
"""Samples for each class: a mixed batch of so many has nearly all of them."""
_SHARED = 1
"""Classes that two neighbours may have in common: that in which the order was cut."""


@dataclass(frozen=True, slots=True)
class LabelShares:
    """What was seen: steps compared, those with classes apart, and each rank's classes at the first of these."""

    num_steps: int
    num_apart: int
    first: dict[int, tuple[int, ...]]


def apart_by_label(trace: Trace) -> LabelShares | None:
    """Ranks that met other classes than each other at nearly all steps that were looked at; None where they did not."""
    ranks = Layout.of(trace).one_each(trace.trainers)
    if len(ranks) < 2:
        return None
    met = [_by_step(rank) for rank in ranks]
    steps = sorted(set.intersection(*(set(one) for one in met)))
    every = {label for one in met for labels in one.values() for label in labels}
    whole = [n for n in steps if all(one[n].total() >= _ENOUGH * len(every) for one in met)]
    if len(every) < _FEWEST_CLASSES or len(whole) < _FEWEST_STEPS:
        return None
    apart = [n for n in whole if _apart([set(one[n]) for one in met])]
    if len(apart) < _MOSTLY * len(whole):
        return None
    first = {rank.rank: tuple(sorted(one[apart[0]])) for rank, one in zip(ranks, met, strict=True)}
    return LabelShares(len(whole), len(apart), first)


def _by_step(rank: RankTrace) -> dict[int, Counter[int]]:
    """The labels that came before each step in training."""
    found: dict[int, Counter[int]] = {}
    for batch in (b for one in passes_of(rank) if one.kind == "training" for b in one.batches):
        if batch.labels:
            found.setdefault(batch.step, Counter()).update(batch.labels)
    return found


def _apart(classes: list[set[int]]) -> bool:
    return all(len(a & b) <= _SHARED for n, a in enumerate(classes) for b in classes[n + 1 :])
