"""Scores on hidden data as learners are told them: in steps, so that many submissions cannot spell out hidden labels.

Attempt limits make such probing slow, steps make each answer worth little. Staff read every score as it was measured.
Nothing here changes a verdict or points.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace

from grader.model.grade import Grade

STEP = 0.005
"""Of an accuracy from 0 to 1."""
TOLD_IN_STEPS = (
    "Accuracy on unseen data is told in steps of half a percentage point, always on its side of the target."
)
_UNTOLD = ("loss",)
"""A mean loss has no bounds: one sample's part in it can be made as large as one likes, so steps would not help."""
# As the rubric words it; the number alone is another score.
_SCORE = re.compile(r"(?<![\d.])[01]\.\d+(?= on [\d,]+ hidden samples)")
_HAIR = 1e-6


def coarse(value: float, target: float | None) -> float:
    """A score from 0 to 1 rounded down to a step, on the same side of the target as before; it stays so if repeated."""
    if not math.isfinite(value):
        return value
    # A hair: 0.86 is a little less than 172 steps of 0.005.
    num_steps = math.floor(value / STEP + _HAIR)
    if target is None:
        return round(num_steps * STEP, 6)
    if value >= target:
        return max(round(num_steps * STEP, 6), target)
    while round(num_steps * STEP, 6) >= target:
        num_steps -= 1
    return round(num_steps * STEP, 6)


def with_coarse_scores(grade: Grade) -> Grade:
    """The grade with every score on hidden data told in steps, in its numbers and in its sentences."""
    metrics = {name: None if name in _UNTOLD else value for name, value in grade.metrics.items()}
    value = metrics.get("accuracy")
    if value is None:
        return replace(grade, metrics=metrics)
    told = coarse(value, metrics.get("accuracy_target"))

    def worded(text: str) -> str:
        return _SCORE.sub(f"{told:.3f}", text)

    return replace(
        grade,
        verdict_reason=worded(grade.verdict_reason),
        rubric=tuple(replace(item, reason=worded(item.reason)) for item in grade.rubric),
        metrics={**metrics, "accuracy": told},
        notes=grade.notes if TOLD_IN_STEPS in grade.notes else (*grade.notes, TOLD_IN_STEPS),
    )
