"""What a rehearsal showed: waits, first grades, the last grade, and whether the room is served in time."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from grader.rehearsal.scenario import Scenario

LATEST_S = 300.0
"""How long after the window the last grade may come."""


@dataclass(frozen=True, slots=True)
class ServedAttempt:
    """One attempt, in seconds since the beginning."""

    learner: int
    queued_s: float
    claimed_s: float
    finished_s: float
    accepted: bool

    @property
    def wait_s(self) -> float:
        """From handing in to its claim."""
        return self.claimed_s - self.queued_s


@dataclass(frozen=True, slots=True)
class RehearsalResult:
    """A rehearsal that was played to its end.

    Attributes:
        scenario: what was played.
        served: all attempts of learners, in the order of their grades.
        refused: hand-ins that a limit refused, by limit.
        regrades_s: when each background regrade was done; late_regrades: done after the window.
        busy: share of the GPUs' time within the window that attempts took.
    """

    scenario: Scenario
    served: tuple[ServedAttempt, ...]
    refused: dict[str, int]
    regrades_s: tuple[float, ...]
    busy: float

    @property
    def waits_s(self) -> tuple[float, ...]:
        """Every attempt's wait, shortest first."""
        return tuple(sorted(one.wait_s for one in self.served))

    @property
    def firsts_s(self) -> dict[int, float]:
        """When each learner had a first grade; who never had one is not in it."""
        firsts: dict[int, float] = {}
        for one in self.served:
            firsts.setdefault(one.learner, one.finished_s)
        return firsts

    @property
    def without(self) -> tuple[int, ...]:
        """Learners who had no grade when the window closed."""
        firsts = self.firsts_s
        learners = range(self.scenario.num_learners)
        return tuple(n for n in learners if firsts.get(n, float("inf")) > self.scenario.window_s)

    @property
    def num_accepted(self) -> int:
        """Learners with an accepted attempt."""
        return len({one.learner for one in self.served if one.accepted})

    @property
    def last_s(self) -> float:
        """When the last grade came."""
        return max((one.finished_s for one in self.served), default=0.0)

    @property
    def met(self) -> bool:
        """Everybody has a grade within the window, and the last one comes at most `LATEST_S` after it."""
        return not self.without and self.last_s <= self.scenario.window_s + LATEST_S


def quantile(ordered: Sequence[float], part: float) -> float:
    """The value below which that part of sorted values lies; 0 of none."""
    if not ordered:
        return 0.0
    if len(ordered) == 1:
        return ordered[0]
    return statistics.quantiles(ordered, n=100, method="inclusive")[round(part * 100) - 1]
