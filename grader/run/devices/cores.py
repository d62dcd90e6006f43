"""The processor cores that this process may use, with the threads of one core kept together.

Reads the process's affinity, what a batch system gave it, and /sys; where /sys says nothing, each CPU counts as a core.
"""

from __future__ import annotations

import os
from pathlib import Path

from grader.run.devices.allocation import read_allocation
from grader.run.devices.hardware import Core, parse_cpu_list

_CPUS = Path("/sys/devices/system/cpu")


def read_cores() -> tuple[Core, ...]:
    """All cores by first CPU; of a core that is ours in part, the CPUs that are ours."""
    allocation = read_allocation()
    bound = sorted(os.sched_getaffinity(0))
    ours = set(bound if allocation is None else allocation.own_cpus(bound))
    cores: dict[tuple[int, ...], Core] = {}
    for cpu in sorted(ours):
        cpus = tuple(sorted(ours.intersection(_threads(cpu)) | {cpu}))
        cores.setdefault(cpus, Core(cpus, _numa_node(cpu)))
    return tuple(cores.values())


def _threads(cpu: int) -> tuple[int, ...]:
    # The second is the older name of the first.
    for name in ("core_cpus_list", "thread_siblings_list"):
        try:
            return parse_cpu_list((_CPUS / f"cpu{cpu}" / "topology" / name).read_text(encoding="ascii"))
        except (OSError, ValueError):
            continue
    return (cpu,)


def _numa_node(cpu: int) -> int | None:
    for link in sorted((_CPUS / f"cpu{cpu}").glob("node[0-9]*")):
        return int(link.name.removeprefix("node"))
    return None
