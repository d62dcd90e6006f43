"""What somebody asks for: a number of GPUs and cores, for how long at most, in whose name.

Says nothing about which; a set is given whole or not at all.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

from grader.errors import InfraError, UsageError
from grader.run.devices.hardware import Inventory


@dataclass(frozen=True, slots=True)
class Need:
    """One request.

    Attributes:
        wall_s: longest time for which the set will be held, start and scoring included; others are let in by it, and
            a holder that is far over it loses its lease.
        num_gpus: whole GPUs. num_cores: physical cores; a host with fewer gives all it has, to nobody else meanwhile.
        owner: for people, such as the attempt's name.

    Raises:
        ValueError: it asks for nothing, for less than nothing, or for no time or for ever.
    """

    wall_s: float
    num_gpus: int = 0
    num_cores: int = 2
    owner: str = ""

    def __post_init__(self) -> None:
        if self.num_gpus < 0 or self.num_cores < 0 or self.num_gpus + self.num_cores == 0:
            raise ValueError(f"{self.num_gpus} GPUs and {self.num_cores} cores can't be leased")
        if not (0 < self.wall_s < math.inf):
            raise ValueError(f"wall_s is {self.wall_s}: a lease needs a time limit")

    def __str__(self) -> str:
        counts = ((self.num_gpus, "GPU"), (self.num_cores, "core"))
        return " and ".join(f"{num} {noun}{'s' if num > 1 else ''}" for num, noun in counts if num)


def check_possible(need: Need, inventory: Inventory) -> None:
    """Refuse what this host could never give.

    Raises:
        InfraError: the host has not that many GPUs, or some must not be handed out right now; the text says why.
    """
    if need.num_gpus <= len(inventory.offered):
        return
    wanted = f"{need.num_gpus} GPU{'s are' if need.num_gpus > 1 else ' is'} needed"
    unfit = "; ".join(f"GPU {gpu.index} ({gpu.uuid}): {gpu.unfit}" for gpu in inventory.gpus if gpu.unfit)
    if need.num_gpus <= len(inventory.gpus):
        raise InfraError(f"{wanted}, and only {len(inventory.offered)} can be handed out here. {unfit}.")
    if not inventory.gpus:
        raise InfraError(
            f"{wanted}, and none can be had here: {inventory.no_gpus}. Is it a job for --profile cpu?"
        )
    raise InfraError(f"{wanted}, and this host has {len(inventory.gpus)}." + (f" {unfit}." if unfit else ""))


def check_one_model(inventory: Inventory) -> None:
    """Refuse to measure where one run may get other GPUs than the next.

    Raises:
        UsageError: GPUs of several models are handed out here.
    """
    models = Counter(gpu.name for gpu in inventory.offered)
    if len(models) > 1:
        named = ", ".join(f"{num} × {name}" for name, num in sorted(models.items()))
        raise UsageError(
            f"GPUs of several models are handed out here ({named}), and reference times hold for one: "
            "set GRADER_GPU_MODEL to a part of its name, here and for the worker that judges with it"
        )
