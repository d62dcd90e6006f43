"""A worker as a job of the batch system: which attempts it was submitted for, and how far it is. Plain data."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

CPU = "cpu"
_GPUS = re.compile(r"gpu([1-9][0-9]*)")


class JobState(StrEnum):
    """As far as feeding goes; Slurm knows more."""

    PENDING = "pending"
    RUNNING = "running"
    ENDED = "ended"
    FAILED = "failed"
    """Its worker could not start, broke, or ended before it could have been idle: another one would do the same."""


@dataclass(frozen=True, slots=True)
class WorkerJob:
    """One job.

    Attributes:
        need: what attempts it was submitted for need: `cpu`, `gpu1`, `gpu2`, …
        age_s: seconds that it has been running for; of one that waits 0.
        reason: why it waits, as the batch system says; "" where it does not.
        worker: the name that its worker has in the queue.
    """

    job_id: int
    need: str
    state: JobState
    worker: str
    age_s: float = 0.0
    reason: str = ""


def num_gpus_of(need: str) -> int:
    """How many GPUs an attempt with this need wants.

    Raises:
        ValueError: that is no need.
    """
    if need == CPU:
        return 0
    match = _GPUS.fullmatch(need)
    if match is None:
        raise ValueError(f"{need} is no need of an attempt")
    return int(match[1])
