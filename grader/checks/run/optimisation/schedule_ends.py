"""Schedules that did not go with the training to its end, by the rates that the optimizers stepped with.

A cosine that was over before the training climbs again, and swings up and down where it was counted in epochs and
stepped in batches; other curves stand at 0 then; an optimizer that was built anew goes on without the schedule of the
one before. Rates that rise on purpose come from schedules that are called so, and are left alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from grader.checks.run.optimisation.learning_rates import LearningRateCurve, schedule_lengths
from grader.model.trace import Event, RankTrace, Step

_CYCLES = {"CosineAnnealingWarmRestarts", "CyclicLR", "OneCycleLR", "LambdaLR", "MultiplicativeLR"}
_COSINE = "CosineAnnealingLR"
_FALLEN = 0.5
"""A rate that has come below this share of its peak has fallen."""
_CLIMBED = 0.1
"""One that has climbed this share of its fall again does not end where its curve does."""
_SWING = 0.8
"""Swings of one cosine are as high as its first fall, but for steps that lie beside its tops and bottoms."""
_MIN_STEPS = 20
_MIN_MOVES = 4
_NO_RATE = 1e-9
"""A rate below this share of its peak is 0: what a sum or a cosine leaves of it is rounding."""
_MIN_IDLE = 10
_IDLE_SHARE = 0.15
"""Steps at rate 0 that are more than the rounding of an epoch's end, and than a last one at the foot of a curve."""


@dataclass(frozen=True, slots=True)
class Bounce:
    """A cosine that climbs again.

    Attributes:
        event: made it. length: as it should be. peak, bottom, end: rates before its fall, after it, in the last step.
        climbs: how often it climbed; more than once where it swings up and down.
        begin: steps before its fall.
    """

    event: Event
    length: int
    peak: float
    bottom: float
    end: float
    climbs: int
    begin: int


def bounce(rank: RankTrace, curve: LearningRateCurve, num_epochs: int = 0) -> Bounce | None:
    """A rate that fell to its bottom by a cosine, climbed again, and was not at its bottom when training ended.

    Waves that end at their bottom may be meant so, unless the cosine is no longer than the run has epochs, and is over
    after so many steps: then its length is one in epochs.
    """
    kinds = {str(e.fields.get("kind")) for e in rank.events("lr_scheduler")}
    cosines = [told for told in schedule_lengths(rank) if told[0].fields.get("kind") == _COSINE]
    made = [(event, length) for event, length in cosines if length == event.fields.get("length")]
    rates = curve.rates
    if len(made) != 1 or kinds & _CYCLES or len(rates) < _MIN_STEPS:
        return None
    turns = _turns(rates, curve.peak_at)
    if len(turns) < 3:
        return None
    (event, length), (top, bottom) = made[0], turns[:2]
    least, fall = rates[bottom], rates[top] - rates[bottom]
    alike = all(abs(rates[b] - rates[a]) >= _SWING * fall for a, b in pairwise(turns[:-1]))
    in_epochs = length <= num_epochs and bottom - top <= length
    if not alike or least > _FALLEN * rates[top] or (rates[-1] - least < _CLIMBED * fall and not in_epochs):
        return None
    needed = round(length * (len(rates) - top) / (bottom - top))
    return Bounce(event, needed, rates[top], least, rates[-1], (len(turns) - 1) // 2, top)


def _turns(rates: Sequence[float], first: int) -> list[int]:
    """Where a rate turns from `first` on: at a top, a bottom, the next top, …, and where it last was the farthest.

    The last of equal rates stands for them. A move that is small beside the largest one is no turn.
    """
    least = _CLIMBED * (max(rates[first:]) - min(rates[first:]))
    turns: list[int] = []
    farthest = first
    for n in range(first, len(rates)):
        up = len(turns) % 2 == 0
        if rates[n] >= rates[farthest] if up else rates[n] <= rates[farthest]:
            farthest = n
        elif abs(rates[n] - rates[farthest]) >= least:
            turns.append(farthest)
            farthest = n
    return [*turns, farthest]


@dataclass(frozen=True, slots=True)
class LeftBehind:
    """A schedule whose optimizer was replaced.

    Attributes:
        schedule: made it. step: the first of the optimizer that came then; rate: what it stepped with, to the end.
        taken: steps of the optimizer before; left: those that came then.
    """

    schedule: Event
    step: Step
    rate: float
    taken: int
    left: int


def left_behind(rank: RankTrace, curve: LearningRateCurve) -> LeftBehind | None:
    """A schedule that moved the rate until another optimizer took the place of its own, and never since."""
    starts = [n for n, (a, b) in enumerate(pairwise(curve.steps), 1) if a.optimizer != b.optimizer]
    told = schedule_lengths(rank)
    if not starts or not told or any(e.t > curve.steps[starts[0] - 1].t for e, _ in told):
        return None
    first = starts[0]
    before, after = curve.rates[:first], curve.rates[first:]
    moves = sum(a != b for a, b in pairwise(before))
    schedule, length = told[-1]
    unfinished = moves >= max(_MIN_MOVES, (first - 1) // 2) and length > first
    if not unfinished or len(set(after)) > 1 or len(after) < _MIN_STEPS:
        return None
    return LeftBehind(schedule, curve.steps[first], after[0], first, len(after))


def of_another_optimizer(rank: RankTrace, curve: LearningRateCurve) -> Event | None:
    """A schedule that was stepped to the end while its optimizer never was, and the rate of the other stood still."""
    told = next(iter(reversed(rank.events("idle_schedule"))), None)
    if told is None or len(set(curve.rates)) > 1 or len(curve.rates) < _MIN_MOVES:
        return None
    n = told.fields.get("n")
    # Told at calls 1, 2, 4, …: the last of them is in the second half.
    return told if isinstance(n, int) and 2 * n + 2 >= len(rank.steps) else None


@dataclass(frozen=True, slots=True)
class IdleEnd:
    """Steps at the end of a run that changed nothing: the first of them, how many before it did, how many they are."""

    step: Step
    taken: int
    left: int


def idle_end(curve: LearningRateCurve) -> IdleEnd | None:
    """A rate that came to 0 long before training ended, and stayed there."""
    least = _NO_RATE * curve.peak
    taken = len(curve.rates)
    while taken and abs(curve.rates[taken - 1]) <= least:
        taken -= 1
    left = len(curve.rates) - taken
    if not taken or left < max(_MIN_IDLE, _IDLE_SHARE * len(curve.rates)):
        return None
    return IdleEnd(curve.steps[taken], taken, left)
