"""Schedules that did not go with the training to its end, by the rates that the optimizers stepped with.

A cosine that was over before the training climbs again, other curves stand at 0 then; an optimizer that was built anew
goes on without the schedule of the one before. Rates that rise on purpose come from schedules that are called so, and
are left alone.
"""

from __future__ import annotations

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
_AT_PEAK = 0.98
"""One that stays above this share of its peak has not begun to fall."""
_MIN_STEPS = 20
_MIN_MOVES = 4
_NO_RATE = 1e-9
"""A rate below this share of its peak is 0: what a sum or a cosine leaves of it is rounding."""
_MIN_IDLE = 10
_IDLE_SHARE = 0.15
"""Steps at rate 0 that are more than the rounding of an epoch's end, and than a last one at the foot of a curve."""


@dataclass(frozen=True, slots=True)
class Bounce:
    """A cosine that climbs again: `event` made it; `length`: as it should be; rates at its bottom and at the end."""

    event: Event
    length: int
    peak: float
    bottom: float
    end: float


def bounce(rank: RankTrace, curve: LearningRateCurve) -> Bounce | None:
    """A rate that fell to its bottom by a cosine and was on its way up again when training ended."""
    kinds = {str(e.fields.get("kind")) for e in rank.events("lr_scheduler")}
    cosines = [told for told in schedule_lengths(rank) if told[0].fields.get("kind") == _COSINE]
    made = [(event, length) for event, length in cosines if length == event.fields.get("length")]
    rates, first = curve.rates, curve.peak_at
    if len(made) != 1 or kinds & _CYCLES or len(rates) < _MIN_STEPS:
        return None
    least = min(rates[first:])
    bottom = max(n for n, rate in enumerate(rates) if n >= first and rate == least)
    top = max(n for n, rate in enumerate(rates[: bottom + 1]) if rate == max(rates[first : bottom + 1]))
    # Who lets it rise and fall several times means it.
    once = all(rate >= _AT_PEAK * rates[top] for rate in rates[first:top])
    falls = once and all(a >= b for a, b in pairwise(rates[top : bottom + 1]))
    climbs = all(a <= b for a, b in pairwise(rates[bottom:]))
    end, fall = rates[-1], rates[top] - least
    if not (falls and climbs) or least > _FALLEN * rates[top] or end - least < _CLIMBED * fall:
        return None
    event, length = made[0]
    needed = round(length * (len(rates) - top) / (bottom - top))
    return Bounce(event, needed, rates[top], least, end)


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
