"""Scores on hidden data as learners are told them: in steps, so that many submissions cannot spell out hidden labels.

Attempt limits make such probing slow, steps make each answer worth little. Staff read every score as it was measured.
Nothing here changes a verdict or points.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import replace

from grader.model.grade import Grade
from grader.model.metric import Direction, Metric, target_of, validation_of

_ON_HIDDEN = r"(?= on (?:[\d,]+ hidden samples|hidden data))"
"""As the rubric words a score; the number alone is another one."""
_HAIR = 1e-6


def told_in_steps(metrics: Iterable[Metric]) -> str:
    """How learners read scores on hidden data."""
    steps = (f"{m.heading} on unseen data is told in steps of {m.readable_step:g}" for m in metrics)
    return " ".join(f"{step}, always on its side of the target." for step in steps)


def coarse(metric: Metric, value: float, target: float | None) -> float:
    """A score moved to a step, for the worse and on its side of the target; it stays so if repeated."""
    if metric.direction is Direction.MIN:
        return -_floor(metric.readable_step, -value, None if target is None else -target)
    return _floor(metric.readable_step, value, target)


def _floor(step: float, value: float, target: float | None) -> float:
    if not math.isfinite(value):
        return value
    # A hair: 0.86 is a little less than 172 steps of 0.005.
    num_steps = math.floor(value / step + _HAIR)
    if target is None:
        return round(num_steps * step, 9)
    if value >= target:
        return max(round(num_steps * step, 9), target)
    while round(num_steps * step, 9) >= target:
        num_steps -= 1
    return round(num_steps * step, 9)


def with_coarse_scores(grade: Grade) -> Grade:
    """The grade with every score on hidden data told in steps, in its numbers and in its sentences.

    What a task's `evaluate()` says besides its metrics, such as a loss, learners are not told.
    """
    metrics: dict[str, float | None] = {}
    words: list[tuple[str, str]] = []
    for name, value in grade.metrics.items():
        metric = next((metric for metric in grade.measures if metric.name == name), None)
        if metric is not None and value is not None:
            told = coarse(metric, value, grade.metrics.get(target_of(name)))
            words.append((rf"(?<![\d.]){re.escape(metric.text(value))}{_ON_HIDDEN}", metric.text(told)))
            metrics[name] = told
        else:
            untold = metric is None and validation_of(name) in grade.metrics
            metrics[name] = None if untold else value
    if not words:
        return replace(grade, metrics=metrics)

    def worded(text: str) -> str:
        for pattern, told in words:
            text = re.sub(pattern, told.replace("\\", r"\\"), text)
        return text

    note = told_in_steps(grade.measures)
    return replace(
        grade,
        verdict_reason=worded(grade.verdict_reason),
        rubric=tuple(replace(item, reason=worded(item.reason)) for item in grade.rubric),
        metrics=metrics,
        notes=grade.notes if note in grade.notes else (*grade.notes, note),
    )
