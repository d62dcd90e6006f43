"""CPU time that no rank owns up to, found and charged to the one that used the most.

The kernel tells a rank's time when the rank is reaped, with that of the children it waited for. What daemons computed
that nobody saw, and children that were never waited for, is missing there; a container's control group counts it all.
"""

from __future__ import annotations

import resource
from pathlib import Path

from grader.launch.ranks.rank_process import RankProcess

_V1 = Path("/sys/fs/cgroup/cpuacct/cpuacct.usage")
_V2 = Path("/sys/fs/cgroup/cpu.stat")
_BLUR_S = 0.05
"""The store's, the container's first process' and our parent's part, and how far the kernel's two ledgers differ."""


class CpuWatch:
    """Counts from its making on.

    Args:
        whole_group: everything in the control group that we see belongs to this run, or is this process.
    """

    def __init__(self, *, whole_group: bool) -> None:
        self._group_before = _group_s() if whole_group else None
        self._own_before = _own_s()
        self.orphans_s = 0.0
        """What orphans used that nobody had seen before they were reaped."""

    def settle(self, ranks: list[RankProcess]) -> None:
        """Charge what is missing, once everything has ended."""
        missing = self.orphans_s
        now = _group_s()
        if self._group_before is not None and now is not None:
            owned = sum(rank.cpu_user_s + rank.cpu_system_s for rank in ranks)
            missing = now - self._group_before - (_own_s() - self._own_before) - owned
        if missing > _BLUR_S:
            # Whose it was nobody knows; charged to the busiest, it helps no rank to look faster than it is.
            max(ranks, key=lambda rank: rank.cpu_user_s + rank.cpu_system_s).cpu_user_s += missing


def _own_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _group_s() -> float | None:
    try:
        return int(_V1.read_text()) / 1e9
    except (OSError, ValueError):
        pass
    try:
        fields = dict(line.split() for line in _V2.read_text().splitlines())
        return int(fields["usage_usec"]) / 1e6
    except (OSError, ValueError, KeyError):
        return None
