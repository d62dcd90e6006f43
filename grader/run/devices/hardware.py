"""What can be leased: GPUs and processor cores, as far as handing them out needs to know them.

Plain data; reads nothing from the machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Gpu:
    """One whole GPU.

    Attributes:
        uuid: the driver's name for it (`GPU-…`), or `index N` where it is too broken to tell.
        index: its number as NVML counts.
        name: product name; memory_bytes: its memory, 0 where it does not say.
        driver, cuda: the driver's version (`580.65.06`), and the newest CUDA that it serves (`13.0`).
        compute_capability: its generation (`9.0`). All three are "" where unknown.
        numa_node: memory node of the host that it hangs on, None where unknown.
        distances: (uuid, steps) to other GPUs: 0 over NVLink, 1 (one board) to 6 (across sockets) over PCIe.
        unfit: why it is not handed out, "" where it is fit.
        notes: what people should know of it although it is handed out.
        num_processes: processes that compute on it right now, whoever they belong to; processes: how people know them.
        used_bytes: of its memory, without what the driver keeps for itself; 0 where it does not say.
    """

    uuid: str
    index: int
    name: str = ""
    memory_bytes: int = 0
    numa_node: int | None = None
    distances: tuple[tuple[str, int], ...] = ()
    unfit: str = ""
    notes: tuple[str, ...] = ()
    num_processes: int = 0
    processes: tuple[str, ...] = ()
    used_bytes: int = 0
    driver: str = ""
    cuda: str = ""
    compute_capability: str = ""


@dataclass(frozen=True, slots=True)
class Core:
    """One physical core: the CPUs (hardware threads) of it that this process may use, ascending.

    They are handed out together, because two attempts on threads of one core would slow each other down.
    """

    cpus: tuple[int, ...]
    numa_node: int | None = None


@dataclass(frozen=True, slots=True)
class Inventory:
    """What this host has.

    Attributes:
        gpus: all of them by index, unfit ones too; no_gpus: why there is none, "" where there are some.
        cores: by first CPU.
        hangs: there is a driver, and it gave no answer in time.
    """

    gpus: tuple[Gpu, ...]
    cores: tuple[Core, ...]
    no_gpus: str = ""
    hangs: bool = False

    @property
    def offered(self) -> tuple[Gpu, ...]:
        """The GPUs that may be handed out."""
        return tuple(gpu for gpu in self.gpus if not gpu.unfit)


def cpu_list(cpus: Sequence[int]) -> str:
    """CPU numbers as the kernel and container engines write them: `0-2,5`."""
    parts: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if parts and parts[-1][1] == cpu - 1:
            parts[-1][1] = cpu
        else:
            parts.append([cpu, cpu])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)


def parse_cpu_list(text: str) -> tuple[int, ...]:
    """The CPU numbers in `0-2,5`, ascending; empty text gives none.

    Raises:
        ValueError: that is no list of CPUs.
    """
    cpus: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        first, _dash, last = part.partition("-")
        cpus.update(range(int(first), int(last or first) + 1))
    return tuple(sorted(cpus))
