"""How long a rank's steps took: from each to the next, so that work is counted wherever it is waited for.

On a device a step's work is launched and goes on while the script does; what waits for it may be a loss that is printed
after the step, or the next batch that is copied. The parts that a step tells of itself are then launching alone.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from grader.model.trace import RankTrace, Step

_ENOUGH = 8
"""Steps from which on those that something else lies beside are left out."""


@dataclass(frozen=True, slots=True)
class StepTime:
    """One step, and the seconds from the rank's step before to it."""

    step: Step
    seconds: float


def every_step_time(rank: RankTrace) -> list[StepTime]:
    """The times of all steps of a rank, with evaluation taken out; of the first what it tells of itself."""
    evaluations = evaluation_spans(rank)
    first = [StepTime(one, one.data_s + one.compute_s) for one in rank.steps[:1]]
    following = (
        StepTime(step, max(0.0, step.t - before.t - _overlap(evaluations, before.t, step.t)))
        for before, step in pairwise(rank.steps)
    )
    return [*first, *following]


def step_times(rank: RankTrace) -> list[StepTime]:
    """The times of a rank's steps but the first, which pays for what is made lazily.

    Left out are steps that the probe looked at closely, which costs more than others, and steps with the beginning of a
    pass, an evaluation or a saved checkpoint before them; of a run too short for that, nothing is left out.
    """
    every = every_step_time(rank)[1:]
    beside = sorted(
        [
            *(p.t for p in rank.passes),
            *(begin for begin, _ in evaluation_spans(rank)),
            *(s.t for s in rank.saves),
        ]
    )
    plain = [
        one
        for one, (before, step) in zip(every, pairwise(rank.steps), strict=True)
        if before.grads is None
        and step.grads is None
        and bisect_right(beside, before.t) == bisect_right(beside, step.t)
    ]
    return plain if len(plain) >= _ENOUGH else every


def evaluation_spans(rank: RankTrace) -> list[tuple[float, float]]:
    """Beginning and end of each run of forward passes outside training, seconds since the ranks' start."""
    spans, begun = [], None
    for event in rank.events("evaluation"):
        if event.fields.get("op") == "begin":
            begun = event.t
        elif begun is not None:
            spans.append((begun, event.t))
            begun = None
    return spans


def _overlap(spans: Sequence[tuple[float, float]], begin: float, end: float) -> float:
    """Seconds of the spans, which are in order and apart, between two times."""
    first = bisect_right(spans, begin, key=lambda span: span[1])
    seconds = 0.0
    for span_begin, span_end in spans[first:]:
        if span_begin >= end:
            break
        seconds += min(span_end, end) - max(span_begin, begin)
    return seconds
