"""Learning rates and batches of a run, as its optimizers stepped with them.

Reads the steps alone; which rate or batch would have been right is the rules' matter.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from math import isnan
from statistics import median

from grader.checks.run.data.loader_passes import passes_of
from grader.checks.run.models.parallel_layout import Layout
from grader.checks.source.script import Script
from grader.model.finding import Location
from grader.model.trace import Event, RankTrace, Step, Trace

_OPTIMIZERS = "torch.optim."
_WARM_UPS = ("LinearLR", "ConstantLR")
_MOVING = {"LinearLR", "CosineAnnealingLR", "OneCycleLR", "PolynomialLR", "SequentialLR"}
_MIN_MOVES = 4
"""Moves of a rate that show how far apart they are."""
_FEWEST_HELD = 4
"""Steps in a row that show a batch to be meant so: the last one of an epoch may be smaller."""
_FALLEN = 0.7
"""A rate below this share of the one before has fallen far."""
TOLERANCE = 1e-6
"""Relative difference up to which two rates are the same: the same formula in another order of operations."""


@dataclass(frozen=True, slots=True)
class LearningRateCurve:
    """The rates of one rank's main optimizer, and of those that were built anew in its place.

    Attributes:
        kind: class of the optimizer. steps: its steps in order. rates: largest rate of its groups at each of them.
        elements: numbers that each of its groups steps on; empty where nobody told.
    """

    kind: str
    steps: tuple[Step, ...]
    rates: tuple[float, ...]
    elements: tuple[int, ...] = ()

    @property
    def peak(self) -> float:
        """The largest rate of all."""
        return max(self.rates)

    @property
    def peak_at(self) -> int:
        """Steps before the rate first came within a hundredth of its peak."""
        return next(n for n, rate in enumerate(self.rates) if rate >= 0.99 * self.peak)

    @property
    def peaks(self) -> tuple[float, ...]:
        """The largest rate of each group; empty where groups came or went."""
        groups = {len(s.lr) for s in self.steps}
        return tuple(map(max, zip(*(s.lr for s in self.steps), strict=True))) if len(groups) == 1 else ()

    @property
    def of_most(self) -> float:
        """The peak of the rate that most elements of the model were trained with; the largest where nobody told."""
        if len(self.peaks) != len(self.elements) or not sum(self.elements):
            return self.peak
        passed = 0
        for peak, elements in sorted(zip(self.peaks, self.elements, strict=True)):
            passed += elements
            if 2 * passed > sum(self.elements):
                return peak
        return self.peak


def curve(rank: RankTrace) -> LearningRateCurve | None:
    """The rates of the optimizer that took most steps; None where there is none with a rate above 0."""
    steps = max(_one_after_the_other(rank), key=len, default=())
    rates = tuple(max(s.lr) for s in steps)
    if not steps or max(rates) <= 0:
        return None
    kind = steps[0].kind
    told = (e.fields.get("group_elements") for e in rank.events("held") if e.fields.get("kind") == kind)
    elements = next((tuple(n) for n in told if isinstance(n, list) and len(n) == len(steps[0].lr)), ())
    known = all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in elements)
    return LearningRateCurve(kind, steps, rates, elements if known else ())


def set_back(found: LearningRateCurve) -> bool:
    """Whether the rate fell far after the first step alone, and rose from there: what was set by hand did not last."""
    if len(found.rates) < _MIN_MOVES:
        return False
    first, second, third = found.rates[:3]
    return second < _FALLEN * first and third >= second and max(found.rates[1:]) > second


def after_first(found: LearningRateCurve) -> LearningRateCurve:
    """The same curve without its first step."""
    return replace(found, steps=found.steps[1:], rates=found.rates[1:])


def _one_after_the_other(rank: RankTrace) -> list[tuple[Step, ...]]:
    """The steps of each optimizer; of those that take each other's place on one wrapped model, of all together."""
    by_optimizer: dict[int, list[Step]] = {}
    for step in rank.steps:
        if step.lr:
            by_optimizer.setdefault(step.optimizer, []).append(step)
    chains: list[list[Step]] = []
    for steps in by_optimizer.values():
        before = next((c for c in chains if c[-1].n < steps[0].n and _same_model(c[0], steps[0])), None)
        if before is None:
            chains.append(list(steps))
        else:
            before += steps
    return [tuple(c) for c in chains]


def _same_model(a: Step, b: Step) -> bool:
    """Whether two optimizers step the same parameters, by their first steps: later ones don't tell them all."""
    alike = all(getattr(a, n) == getattr(b, n) for n in ("kind", "wraps", "num_params", "grad_names"))
    return alike and bool(a.wraps)


def batches(trace: Trace) -> dict[int, int]:
    """Rank → samples per optimizer step, the median over its steps; empty where any training rank tells none.

    Ranks that hold parts of one model work on the same samples, and the first of them stands for all.
    """
    found = {}
    for rank in Layout.of(trace).one_each(trace.trainers):
        drawn = Counter[int]()
        for batch in rank.batches:
            drawn[batch.step] += batch.size
        # A batch that goes forward twice (SAM, a line search) is still one batch.
        sizes = [min(s.samples, drawn[s.n] or s.samples) for s in rank.steps if s.samples > 0]
        if not sizes:
            return {}
        found[rank.rank] = round(median(sizes))
    return found


def batch_levels(trace: Trace) -> tuple[int, ...]:
    """Samples of all ranks in a step, as often as a script changes them: each held for some steps, smallest first."""
    of_ranks = [[s.samples for s in rank.steps] for rank in Layout.of(trace).one_each(trace.trainers)]
    totals = [sum(one) for one in zip(*of_ranks, strict=False)]
    held = {total for total, steps in groupby(totals) if total and len(list(steps)) >= _FEWEST_HELD}
    return tuple(sorted(held))


def loaders_in_step(trace: Trace) -> int:
    """Loaders that most steps take a batch from, of the rank where these are most; 0 where no loader tells."""
    found = 0
    for rank in trace.trainers:
        drawn: dict[int, set[int]] = {}
        for one in passes_of(rank):
            for batch in one.batches if one.kind == "training" else ():
                drawn.setdefault(batch.step, set()).add(batch.loader)
        found = max(found, round(median(map(len, drawn.values()))) if drawn else 0)
    return found


def steps_between_moves(rank: RankTrace) -> int:
    """Optimizer steps from one step of the schedules to the next, by the rates: 1 where that can't be told apart.

    Only kinds that move the rate with every step of theirs tell it. A stair may be stepped at each batch all the same.
    """
    found, kinds = curve(rank), {str(e.fields.get("kind")) for e in rank.events("lr_scheduler")}
    if found is None or not kinds or not kinds <= _MOVING:
        return 1
    moves = [n for n, (a, b) in enumerate(pairwise(found.rates), 1) if a != b]
    gaps = [b - a for a, b in pairwise(moves)]
    least = min(gaps, default=1)
    return least if len(moves) >= _MIN_MOVES and all(gap % least == 0 for gap in gaps) else 1


def endless_warm_up(trace: Trace) -> tuple[int, int] | None:
    """Steps of a warm-up that ended too late, and those that it was given; None where there is none."""
    for rank in trace.trainers:
        given = -(-len(rank.steps) // steps_between_moves(rank))
        for event in rank.events("lr_scheduler"):
            length = event.fields.get("length")
            if event.fields.get("kind") in _WARM_UPS and isinstance(length, int) and 0 < given < length:
                return length, given
    return None


def schedule_lengths(rank: RankTrace) -> list[tuple[Event, int]]:
    """Schedules and the steps that they were made for; last, the sum of those that follow one another."""
    told: list[tuple[Event, int]] = []
    sums: list[tuple[Event, int]] = []
    parts: list[tuple[Event, int]] = []
    for event in rank.events("lr_scheduler"):
        length = event.fields.get("length")
        if isinstance(length, int) and length > 0:
            told.append((event, length))
            parts.append((event, length))
        elif event.fields.get("kind") == "SequentialLR":
            if len(parts) > 1:
                sums.append((parts[-1][0], sum(n for _, n in parts)))
            parts = []
    return [*told, *sums]


def optimizer_places(script: Script) -> tuple[Location, ...]:
    """Where the text builds optimizers of torch."""
    calls = [
        c for name, c in script.calls_under(_OPTIMIZERS) if not name.startswith("torch.optim.lr_scheduler")
    ]
    return tuple(script.location(c) for c in calls[:1])


def same(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    """Whether two steps' rates are equal, group by group; two that are no numbers any more are."""
    return len(a) == len(b) and all(
        (isnan(x) and isnan(y)) or x == y or abs(x - y) <= TOLERANCE * max(abs(x), abs(y))
        for x, y in zip(a, b, strict=True)
    )
