"""What a run must have for something to show at all: a second rank, a group of them, a second machine, a GPU.

Where it lacks that, neither right nor wrong can be seen, however the script is written.
"""

from __future__ import annotations

from enum import StrEnum


class Precondition(StrEnum):
    """What it takes; the value is how authors of tasks write it."""

    RANKS = "ranks"
    """At least two ranks, between which it happens."""
    GROUP = "group"
    """At least two ranks that formed a process group, in which it happens."""
    MACHINES = "machines"
    """Ranks on at least two machines."""
    GPUS = "gpus"
    """Ranks that have GPUs."""

    def met(self, *, num_ranks: int, num_machines: int, gpus: bool) -> bool:
        """Whether a run of that many ranks and machines, with or without GPUs, has it."""
        match self:
            case Precondition.RANKS | Precondition.GROUP:
                return num_ranks > 1
            case Precondition.MACHINES:
                return num_machines > 1
            case Precondition.GPUS:
                return gpus

    @property
    def sentence(self) -> str:
        """What is said where it is missing."""
        return _MISSING[self]


_MISSING = {
    Precondition.RANKS: "Only one rank runs here, and this shows between ranks.",
    Precondition.GROUP: "Only one rank runs here, and this shows between ranks.",
    Precondition.MACHINES: "One machine runs all ranks here, and this shows between machines.",
    Precondition.GPUS: "There is no GPU here, and this shows only on one.",
}
