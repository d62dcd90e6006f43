"""One measured figure with its spread, and the bar it is held against."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """Values of one measure in one setting, in s, ratio or share; lower is better. No bar: for comparison only.

    `num_runs` where the values are not one of each run: then they are an interval's lower end, middle and upper end.
    """

    measure: str
    setting: str
    unit: str
    bar: float | None
    values: tuple[float, ...]
    num_runs: int = 0

    @property
    def runs(self) -> int:
        return self.num_runs or len(self.values)

    @classmethod
    def of(cls, measure: str, setting: str, unit: str, bar: float | None, values: Sequence[float]) -> Figure:
        return cls(measure, setting, unit, bar, tuple(values))

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def met(self) -> bool:
        return self.bar is None or self.median <= self.bar

    def to_json(self) -> dict[str, object]:
        key = "median_s" if self.unit == "s" else "median"
        return {
            key: round(self.median, 5),
            "min": round(min(self.values), 5),
            "max": round(max(self.values), 5),
            "bar": self.bar,
            "met": self.met,
            "runs": self.runs,
            "unit": self.unit,
        }
