"""Ranks whose gradients are next to nothing beside the others', so that what all step on is practically others' work.

Averaging takes the plain sum of what ranks computed: whoever multiplies its own by a tiny number has no part in it, and
the average itself is right. The sizes tell, parameter by parameter, against the samples that a rank was given.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from grader.checks.run.gradients.own_gradients import FEWEST_STEPS
from grader.model.trace import Step

_LITTLE = 1 / 20
"""Of the largest rank's, in each parameter: below it a rank adds nothing that counts. Noise of batches is far above."""
_MOSTLY = 2 / 3
"""Of the steps: now and then a rank may have nothing left to compute."""


@dataclass(frozen=True, slots=True)
class MutedRank:
    """One of them.

    Attributes:
        position: among the ranks that were looked at; loudest: of the one that computed most.
        num_looks: steps at which it was so small.
        share: the most that it computed at these of any parameter, in parts of what the largest rank did.
    """

    position: int
    loudest: int
    num_looks: int
    share: float


def muted_ranks(looks: Sequence[Sequence[Step]]) -> tuple[MutedRank, ...]:
    """Ranks that computed next to nothing at most of the steps, though they were given samples like the others.

    Ranks that have learned what they see compute little as well, and their losses say so: late in a run a gradient is
    little only beside its loss. At its beginning all know equally little, so that there the gradient alone counts.

    Args:
        looks: for each step that was looked at those of all ranks, which told `own` of equal parameters.
    """
    if len(looks) < FEWEST_STEPS:
        return ()
    # A look stands for the steps since the one before it: they become rare.
    spans = [look[0].n - before for look, before in zip(looks, [-1, *(x[0].n for x in looks)], strict=False)]
    found = []
    for position in range(len(looks[0])):
        sizes = [_size(look, position) for look in looks]
        little = [size < _LITTLE * _samples(look, position) for size, look in zip(sizes, looks, strict=True)]
        beside = [
            small and size < _LITTLE * _samples(look, position) * _loss(look, position)
            for small, size, look in zip(little, sizes, looks, strict=True)
        ]
        of_steps = sum(span for span, small in zip(spans, beside, strict=True) if small) / sum(spans)
        if of_steps >= _MOSTLY or (sum(little) >= _MOSTLY * len(looks) and all(little[:FEWEST_STEPS])):
            small = [size for size, one in zip(sizes, little, strict=True) if one]
            found.append(MutedRank(position, _loudest(looks), len(small), max(small)))
    return tuple(found)


def _size(look: Sequence[Step], position: int) -> float:
    """What a rank computed, in parts of what the largest rank did: in the parameter where that is most."""
    return max((abs(mine) / largest for mine, largest in _columns(look, position)), default=1.0)


def _columns(look: Sequence[Step], position: int) -> Iterator[tuple[float, float]]:
    """By parameter, a rank's gradient and the largest of all."""
    for values in zip(*(step.own or () for step in look), strict=True):
        largest = max(abs(value or 0.0) for value in values)
        if largest > 0:
            yield values[position] or 0.0, largest


def _samples(look: Sequence[Step], position: int) -> float:
    """A rank's samples in parts of those of the largest batch: what is weighted by them is smaller by as much."""
    counts = [step.samples for step in look]
    # What is counted in other samples than rows, such as tokens, may be uneven where rows are not.
    numbers = [step.numbers for step in look]
    rows = counts[position] / max(counts) if max(counts) else 0.0
    return min(rows, numbers[position] / max(numbers)) if all(numbers) else rows


def _loss(look: Sequence[Step], position: int) -> float:
    """A rank's loss in parts of the largest; 1 where not all are known."""
    losses = [abs(step.loss) for step in look if step.loss is not None]
    return losses[position] / max(losses) if len(losses) == len(look) and max(losses) > 0 else 1.0


def _loudest(looks: Sequence[Sequence[Step]]) -> int:
    """The rank that computed most at most steps."""
    most = [max(range(len(look)), key=lambda position: _size(look, position)) for look in looks]
    return max(range(len(looks[0])), key=most.count)
