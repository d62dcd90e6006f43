"""M12: a room of 60 before its deadline, played against the real store; a seed is another room with other luck."""

from __future__ import annotations

from collections.abc import Iterator

from grader.rehearsal import Durations, Scenario, rehearse
from grader.rehearsal.result import LATEST_S, quantile
from tests.bench.figures import Figure


def measure_rehearsal(runs: int) -> Iterator[Figure]:
    """Learners without a grade at the end of the window, the last grade after it, and waits for orientation."""
    without, late, median, p95, longest = [], [], [], [], []
    for seed in range(max(5, runs // 2)):
        scenario = Scenario(60, 1800.0, 4, 2, 0.55, Durations.assumed(40.0, 8.0), num_regrades=20, seed=seed)
        played = rehearse(scenario)
        without.append(float(len(played.without)))
        late.append(max(0.0, played.last_s - scenario.window_s))
        median.append(quantile(played.waits_s, 0.5))
        p95.append(quantile(played.waits_s, 0.95))
        longest.append(played.waits_s[-1])
    # The worst room counts, not the median one.
    yield Figure.of(
        "M12", "learners without a grade within the window, worst room", "learners", 0.0, [max(without)]
    )
    yield Figure.of("M12", "last grade after the window, worst room", "s", LATEST_S, [max(late)])
    yield Figure.of("M12", "last grade after the window", "s", LATEST_S, late)
    yield Figure.of("M12", "wait, median of a room", "s", None, median)
    yield Figure.of("M12", "wait, 95 % below", "s", None, p95)
    yield Figure.of("M12", "wait, longest", "s", None, longest)
