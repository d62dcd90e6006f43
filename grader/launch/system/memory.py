"""Memory of a run as the kernel counts it: used now, most ever, and whether the kernel had to end a process.

In a container the run has a control group of its own and that counts; elsewhere processes are added up. Decides
nothing.
"""

from __future__ import annotations

from pathlib import Path

from grader.launch.system.processes import Usage, proportional_bytes

_V1 = Path("/sys/fs/cgroup/memory")
_V2 = Path("/sys/fs/cgroup")
# What a process has made its own: file pages that can be dropped again are nobody's fault.
_OWN_V1 = ("total_rss", "total_shmem")
_OWN_V2 = ("anon", "shmem")


class MemoryWatch:
    """Counts from its making on; `contained`: the control group we see is this run's own."""

    def __init__(self, *, contained: bool) -> None:
        self.contained = contained
        """Whether what is counted is this run's alone."""
        self._kills_before = self._kills()
        self._bytes_before = _group_bytes() if contained else 0
        self.peak_bytes = 0
        """Largest sum that was seen, bytes; only where the run has a control group."""

    def used_bytes(self, processes: dict[int, Usage], limit_bytes: int) -> int:
        """What all ranks together use, exact only near the limit.

        Args:
            processes: theirs now; limit_bytes: below it a cheap upper bound is good enough.
        """
        if self.contained:
            used = max(0, _group_bytes() - self._bytes_before)
            self.peak_bytes = max(self.peak_bytes, used)
            return used
        # Resident sizes count shared pages once per process; only the honest sum may end a run.
        bound = sum(one.rss_bytes for one in processes.values())
        return bound if bound <= limit_bytes else sum(proportional_bytes(pid) for pid in processes)

    @property
    def kernel_killed(self) -> bool:
        """Whether the kernel has ended a process for lack of memory since then."""
        return self._kills() > self._kills_before

    def _kills(self) -> int:
        if self.contained:
            for path in (_V1 / "memory.oom_control", _V2 / "memory.events"):
                if (found := _fields(path)) and "oom_kill" in found:
                    return found["oom_kill"]
        return _fields(Path("/proc/vmstat")).get("oom_kill", 0)


def _group_bytes() -> int:
    # The first version has a `shmem` too, of the group without those below it: counted with the total it would be
    # counted twice.
    for path, own in ((_V1 / "memory.stat", _OWN_V1), (_V2 / "memory.stat", _OWN_V2)):
        if found := _fields(path):
            return sum(found.get(name, 0) for name in own)
    return 0


def _fields(path: Path) -> dict[str, int]:
    """Lines of a name and a number; empty where the file is not there."""
    try:
        pairs = [line.split() for line in path.read_text().splitlines()]
    except OSError:
        return {}
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}
