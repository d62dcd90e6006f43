"""Whether ranks took their n-th steps together, or each in another iteration of the loop.

A rank that skips a step takes its next one where others take the one after: equal numbers are then different moments,
and what ranks held at them says nothing of an average. Told by what ranks have in common however often they step:
backward passes, and collectives, which all ranks call.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from grader.model.trace import RankTrace, Step


def passes_at_steps(rank: RankTrace) -> dict[int, int]:
    """Step → backward passes that the rank had made by then; up to the first step that was not told of."""
    return {step.n: passes for step, passes, _ in _counted(rank)}


def first_apart(ranks: Sequence[RankTrace]) -> int | None:
    """The first step that ranks took in different iterations; None where they all step together, or nobody tells.

    Both numbers must differ: a rank that goes backward once more for itself, or sends a message to one other, still
    steps in the same iteration.
    """
    told = [{step.n: (passes, exchanges) for step, passes, exchanges in _counted(rank)} for rank in ranks]
    apart = [
        n
        for one, other in pairwise(told)
        for n in one.keys() & other.keys()
        if one[n][0] != other[n][0] and one[n][1] != other[n][1]
    ]
    return min(apart, default=None)


def is_one_further(rank: RankTrace) -> bool:
    """Whether a rank has stepped since it drew the last batch that was told: it is in one more, told or not."""
    return not rank.batches or rank.batches[-1].step < len(rank.steps)


def _counted(rank: RankTrace) -> list[tuple[Step, int, int]]:
    """Each step, with the backward passes and the collectives of the default group up to it."""
    found: list[tuple[Step, int, int]] = []
    passes = exchanges = 0
    for number, step in enumerate(rank.steps):
        if step.n != number or step.backwards is None or step.exchanges is None:
            break
        passes, exchanges = passes + step.backwards, exchanges + step.exchanges
        found.append((step, passes, exchanges))
    return found
