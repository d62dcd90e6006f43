"""How many cores other processes left to a run: whether its time says something about the script, or about neighbours.

The kernel counts what all processes used, the run's record what its ranks did; the rest was somebody else's.
"""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from grader.model.run import RunRecord

_QUIET = 0.9
"""Share of a core that each rank must have been able to take."""
_STAT = Path("/proc/stat")
_PERIOD_S, _LOOK_S = 0.1, 0.5
_IDLE = (3, 4)
"""Columns of a core's line that count nobody's work: idle, and idle with input or output under way."""
_NUM_COLUMNS = 8
"""What comes after them (guests) is counted in the first ones, too."""


class MachineWatch:
    """Watches this machine while something runs. Use as a context manager.

    Attributes:
        num_cores: cores that this process may use; the others are nobody's concern.
        used: Unix time, and CPU seconds used on these cores by then; empty where the kernel does not tell.
    """

    def __init__(self) -> None:
        self.num_cores = len(os.sched_getaffinity(0))
        self.used: list[tuple[float, float]] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="machine-watch", daemon=True)

    def __enter__(self) -> Self:
        self._look()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()
        self._look()

    def _watch(self) -> None:
        while not self._over.wait(_PERIOD_S):
            self._look()

    def _look(self) -> None:
        used_s = _used_s()
        if used_s is not None:
            self.used.append((time.time(), used_s))

    def free_cores(self, record: RunRecord) -> float | None:
        """Cores that others left to the ranks of a run that was watched; None where that is not known."""
        start = record.environment.get("started_unix_s")
        if not isinstance(start, int | float) or not record.ranks or len(self.used) < 2:
            return None
        # From the first rank on: what torchrun itself imports before it is neither a neighbour's nor in the way.
        since = start + min(rank.started_s for rank in record.ranks)
        until = start + max(rank.ended_s for rank in record.ranks)
        if until <= since:
            return None
        others_s = self._used_by(until) - self._used_by(since) - sum(rank.cpu_s for rank in record.ranks)
        return self.num_cores - max(others_s, 0.0) / (until - since)

    def _used_by(self, at: float) -> float:
        """CPU seconds used by then, between two looks in proportion."""
        before = max((look for look in self.used if look[0] <= at), default=self.used[0])
        after = min((look for look in self.used if look[0] >= at), default=self.used[-1])
        if after[0] <= before[0]:
            return before[1]
        return before[1] + (after[1] - before[1]) * (at - before[0]) / (after[0] - before[0])


def undisturbed(free_cores: float | None, num_ranks: int) -> bool:
    """Whether each rank could have nearly a core to itself, or all cores where there are fewer than ranks.

    Where nothing is known of others, a time is believed.
    """
    return free_cores is None or free_cores >= _QUIET * min(num_ranks, len(os.sched_getaffinity(0)))


def quiet_now(num_ranks: int) -> bool:
    """Whether that many ranks could start undisturbed; looks for half a second, while nothing of ours runs."""
    with MachineWatch() as watch:
        time.sleep(_LOOK_S)
    if len(watch.used) < 2:
        return True
    (began, first_s), (ended, last_s) = watch.used[0], watch.used[-1]
    return undisturbed(watch.num_cores - (last_s - first_s) / (ended - began), num_ranks)


def _used_s() -> float | None:
    """CPU seconds used on our cores since the machine started, by other guests of the hypervisor, too."""
    ours = {f"cpu{core}" for core in os.sched_getaffinity(0)}
    try:
        lines = _STAT.read_text().splitlines()
        counts = [line.split()[1 : _NUM_COLUMNS + 1] for line in lines if line.partition(" ")[0] in ours]
        ticks = sum(int(n) for core in counts for column, n in enumerate(core) if column not in _IDLE)
    except (OSError, ValueError):
        return None
    return ticks / os.sysconf("SC_CLK_TCK") if counts else None
