"""What a task's `evaluate()` returned, held against the metrics that its `task.toml` names."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

from grader.model.metric import Metric


def checked(said: Any, metrics: Sequence[Metric]) -> dict[str, float]:
    """Numbers by name, infinities and NaN among them.

    Args:
        said: what was returned.
        metrics: what has to be among it.

    Raises:
        ValueError: it is no dictionary of numbers, says nothing of a metric, or calls something a share that is none.
    """
    if not isinstance(said, dict):
        raise ValueError(f"`evaluate()` did not return a dictionary of metrics but {said!r:.80}")
    for metric in metrics:
        if metric.name not in said:
            raise ValueError(f"`evaluate()` returns nothing under {metric.name!r}, which task.toml names")
    values = {str(name): _number(str(name), value) for name, value in said.items()}
    for metric in metrics:
        value = values[metric.name]
        if metric.share and math.isfinite(value) and not 0 <= value <= 1:
            raise ValueError(f"`evaluate()` returns {value:g} for {metric.name!r}, a share from 0 to 1")
    return values


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ValueError(f"`evaluate()` returns {value!r:.80} under {name!r}, which is no number")
    return float(value)


def not_finite(
    metrics: Sequence[Metric], splits: Sequence[Mapping[str, float]]
) -> tuple[Metric, float] | None:
    """The first metric that is no number on one of the splits, and what it is there."""
    told = ((metric, split[metric.name]) for metric in metrics for split in splits)
    return next(((metric, value) for metric, value in told if not math.isfinite(value)), None)
