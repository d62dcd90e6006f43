"""The room that is played: how many people, when they hand in, what becomes of it. Decides nothing of the service's."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from grader.rehearsal.durations import Durations

# When people hand in for the first time, as shares of the window: few at once, most in its second half, everybody with
# some time left to mend what was found.
_FIRST, _MOST, _LAST = 0.1, 0.7, 0.9
# How long somebody reads a report and mends the script, in shares of the window: a minute and a half to six of thirty.
_MENDING = (0.05, 0.2)
_HURRY_S = 60.0
_HURRYING = 0.7
_IMPATIENT = 0.2


@dataclass(frozen=True, slots=True)
class Scenario:
    """What is rehearsed.

    Attributes:
        num_learners: people; window_s: seconds until the task is due, and nothing is taken any more.
        num_gpus: of the one worker host; need: GPUs that one attempt takes.
        failing: share of the attempts that fail.
        durations: how long attempts take.
        num_regrades: regrades of an earlier task that wait from the start, in the background.
        seed: of everything that is drawn.
        max_per_day, max_total: attempts that the course lets each learner make, None for any number.
        task: whose deadline it is, "" for an invented one; places: what attempts take, `GPUs` or `slots`.
    """

    num_learners: int
    window_s: float
    num_gpus: int
    need: int
    failing: float
    durations: Durations
    num_regrades: int = 0
    seed: int = 0
    max_per_day: int | None = None
    max_total: int | None = None
    task: str = ""
    places: str = "GPUs"


@dataclass(slots=True)
class SimulatedLearner:
    """Somebody in the room, who draws from a sequence of their own, so that nobody's luck hangs on another's turn."""

    number: int
    scenario: Scenario
    person_id: int = 0
    rng: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.rng = random.Random(f"{self.scenario.seed}/{self.number}")

    def first_at(self) -> float:
        """When they hand in for the first time."""
        return self.scenario.window_s * self.rng.triangular(_FIRST, _LAST, _MOST)

    def asks_again_after(self) -> float | None:
        """Seconds after which somebody impatient hands the same in once more, without waiting; None: they wait."""
        return self.rng.uniform(5.0, 20.0) if self.rng.random() < _IMPATIENT else None

    def again_at(self, now_s: float) -> float | None:
        """When they hand in again after a script has failed, or None: they let it be."""
        scenario = self.scenario
        mended = now_s + scenario.window_s * self.rng.uniform(*_MENDING)
        if mended < scenario.window_s:
            return mended
        # Who would be too late hands in what there is, in the last minute.
        last_minute = scenario.window_s - self.rng.uniform(1.0, min(_HURRY_S, scenario.window_s / 4))
        hurries = self.rng.random() < _HURRYING
        return last_minute if hurries and last_minute > now_s else None

    def attempt(self) -> tuple[bool, float]:
        """Whether their next script fails, and for how many seconds it is judged."""
        fails = self.rng.random() < self.scenario.failing
        return fails, self.scenario.durations.draw(self.rng, fails=fails)
