"""One metric as a run reported it, beside what the trusted scorer measured of the saved weights."""

from __future__ import annotations

from dataclasses import dataclass

from grader.checks.phrases import count
from grader.model.evaluation import Evaluation
from grader.model.metric import Metric


@dataclass(frozen=True, slots=True)
class MetricClaim:
    """One metric, as it was reported and as it was measured."""

    evaluation: Evaluation
    metric: Metric

    @property
    def measured(self) -> float:
        """Of the saved weights, on the validation data."""
        return self.evaluation.validation[self.metric.name]

    @property
    def values(self) -> tuple[float, ...]:
        """What was reported, by epoch."""
        assert self.evaluation.reported is not None, "who asks has looked"
        return self.evaluation.reported.values(self.metric)

    @property
    def epochs(self) -> list[dict[str, float]]:
        """Those that the values are of, as written."""
        assert self.evaluation.reported is not None, "who asks has looked"
        return [epoch for epoch in self.evaluation.reported.epochs if self.metric.reported_as in epoch]

    @property
    def exactly(self) -> str:
        """The measure, with a digit more than people are shown."""
        return f"{self.measured:.{self.metric.decimals + 1}f}"

    @property
    def on(self) -> str:
        """What it was measured on."""
        number = self.evaluation.num_validation
        return count(number, "sample") if number else "validation data"

    @property
    def said(self) -> str:
        """The last value, and the best where it is another."""
        last, best = self.values[-1], self.metric.best(self.values)
        return f"{last:.4g}" if last == best else f"{last:.4g} at the end and {best:.4g} at best"
