"""Which processes of a run there are now, and which rank each of them descends from.

Remembers what it has seen: a process whose parent is gone still belongs to the rank that it came from.
"""

from __future__ import annotations

import os

from grader.launch.ranks.rank_process import RankProcess
from grader.launch.system.processes import Usage, descendants


class ProcessTree:
    """All descendants of this process, the supervisor."""

    def __init__(self, ranks: list[RankProcess]) -> None:
        self._ranks = ranks
        self.owners: dict[int, RankProcess] = {}
        """Process id → rank, for all that were ever seen and not yet reaped."""
        self.processes: dict[int, Usage] = {}
        """What there was at the last look; parents before their children."""

    def refresh(self) -> None:
        """Look again."""
        self.processes = descendants(os.getpid())
        by_pid = {rank.pid: rank for rank in self._ranks if rank.pid}
        for pid, usage in self.processes.items():
            owner = by_pid.get(pid) or self.owners.get(pid) or self.owners.get(usage.parent)
            owner = owner or by_pid.get(usage.session)
            if owner is not None:
                self.owners[pid] = owner

    def without(self, pids: set[int]) -> dict[int, Usage]:
        """The last look, some processes left out."""
        return {pid: one for pid, one in self.processes.items() if pid not in pids}

    def only(self, pids: set[int]) -> dict[int, Usage]:
        """The last look, but these processes alone."""
        return {pid: one for pid, one in self.processes.items() if pid in pids}

    def cpu_s(self) -> dict[int, float]:
        """Seconds used by every rank and its descendants as of the last look, by rank."""
        used = {rank.rank: 0.0 for rank in self._ranks}
        for pid, usage in self.processes.items():
            if (owner := self.owners.get(pid)) is not None:
                used[owner.rank] += usage.cpu_s
        return used

    def working(self) -> set[int]:
        """Ranks of which some child was at work at the last look.

        Not the ranks themselves: being asked for their stacks has just woken them.
        """
        own = {rank.pid for rank in self._ranks}
        return {
            owner.rank
            for pid, usage in self.processes.items()
            if usage.working and pid not in own and (owner := self.owners.get(pid)) is not None
        }
