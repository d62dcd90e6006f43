"""A figure by which a task measures the networks that scripts leave: accuracy, perplexity, bits per character.

Which way is better, how it is written and how far two honest measurements may lie apart stand here, so that nobody who
judges, draws or prints has to know what the figure is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

_HAIR = 1e-9
"""0.9 × 0.8 is a little more than 0.72."""


class Direction(StrEnum):
    """Which values are better."""

    MAX = "max"
    MIN = "min"


@dataclass(frozen=True, slots=True)
class Metric:
    """What a task's `evaluate()` returns under one name.

    Attributes:
        name: key in what `evaluate()` returns, and in a grade's metrics.
        title: what people call it, as it stands within a sentence: `accuracy`, `bits per character`.
        unit: written behind its values, "" for none; decimals: digits behind the point that people are shown.
        direction: which values are better.
        readable_step: steps in which learners are told values on hidden data, > 0.
        share: its values are shares from 0 to 1, which scripts may report in percent.
        reported_as: key of `metrics.json` under which scripts report it for the validation data.
    """

    name: str
    title: str
    unit: str
    decimals: int
    direction: Direction
    readable_step: float
    share: bool
    reported_as: str

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Metric:
        """From its fields as JSON has them."""
        return cls(**{**fields, "direction": Direction(fields["direction"])})

    @property
    def heading(self) -> str:
        """The title as it begins a line: `Accuracy`, but `mAP`."""
        return self.title if self.title[1:2].isupper() else self.title[:1].upper() + self.title[1:]

    @property
    def trained_as(self) -> str:
        """Key of `metrics.json` under which scripts report it for the training data."""
        return f"train_{self.reported_as.removeprefix('val_')}"

    def text(self, value: float) -> str:
        """`0.834`, `1.92 bits`."""
        return f"{value:.{self.decimals}f}" + (f" {self.unit}" if self.unit else "")

    def asked(self, level: float) -> str:
        """A target in words: `at least 0.900`."""
        return f"at {'least' if self.direction is Direction.MAX else 'most'} {self.text(level)}"

    def reached(self, value: float, level: float) -> bool:
        """Whether a value is as good as that, or better."""
        return value >= level if self.direction is Direction.MAX else value <= level

    def nearly(self, value: float, level: float, factor: float) -> bool:
        """Whether a value is as good as that multiple of a target (> 0): below 1 for `max`, above 1 for `min`."""
        hair = _HAIR if self.direction is Direction.MAX else -_HAIR
        return self.reached(value + hair, factor * level)

    def gain(self, better: float, worse: float) -> float:
        """How much better one value is than another; below 0 where it is worse."""
        return better - worse if self.direction is Direction.MAX else worse - better

    def best(self, values: Iterable[float]) -> float:
        """The best of some values, of one at least."""
        return max(values) if self.direction is Direction.MAX else min(values)

    def tolerance(self, num_samples: int) -> float:
        """How far a report may lie from the measure: two of the steps that learners read (rounding, autocast).

        Of a share two of the `num_samples` samples that were scored, too; 0: it is not known how many there were.
        """
        apart = 2 * self.readable_step
        return max(apart, 2 / num_samples) if self.share and num_samples else apart


def target_of(name: str) -> str:
    """Key of a metric's target among the metrics of a grade."""
    return f"{name}_target"


def validation_of(name: str) -> str:
    """Key of what a metric is on the validation data, among the metrics of a grade."""
    return f"validation_{name}"


ACCURACY = Metric("accuracy", "accuracy", "", 3, Direction.MAX, 0.005, share=True, reported_as="val_accuracy")
"""What tasks meant before they named their metrics."""
