"""What Slurm gave the job that this process runs in, and whether the node holds the job to it.

A site may let every job see and use the whole node (ConstrainDevices and TaskPlugin are its to set). Then we keep to
the allocation by ourselves: to the GPUs of CUDA_VISIBLE_DEVICES, which Slurm sets, and to as many CPUs as the job has.
Reads Slurm's variables, nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from grader.run.devices.hardware import Gpu, Inventory


@dataclass(frozen=True, slots=True)
class Allocation:
    """A job's share of this node.

    Attributes:
        job_id: the job's number.
        num_gpus, num_cpus: what it was given here; 0 CPUs: Slurm does not say.
        names_gpus: whether CUDA_VISIBLE_DEVICES says which GPUs they are.
    """

    job_id: int
    num_gpus: int
    num_cpus: int
    names_gpus: bool

    def own_gpus(self, gpus: Sequence[Gpu]) -> tuple[Gpu, ...]:
        """The node's GPUs, those that are not the job's unfit; all of them, where nothing says which are."""
        fit = sum(not gpu.unfit for gpu in gpus)
        if self.num_gpus and (self.names_gpus or fit <= self.num_gpus):
            return tuple(gpus)
        reason = f"Slurm gave job {self.job_id} no GPU"
        if self.num_gpus:
            reason = f"Slurm gave job {self.job_id} {self.num_gpus} of {fit} GPUs, and does not say which"
        return tuple(replace(gpu, unfit=gpu.unfit or reason) for gpu in gpus)

    def own_cpus(self, cpus: Sequence[int]) -> tuple[int, ...]:
        """As many of the CPUs that the job may run on as it has; where it was bound to them, these are all."""
        if not 0 < self.num_cpus < len(cpus):
            return tuple(cpus)
        # Which ones nobody says. Jobs of one node follow each other in number, so that each begins where another ends.
        first = self.job_id * self.num_cpus
        return tuple(sorted(cpus[(first + number) % len(cpus)] for number in range(self.num_cpus)))

    def problems(self, inventory: Inventory, num_cpus: int) -> Iterator[str]:
        """What the node does not hold the job to, or lacks.

        Args:
            inventory: all that can be seen here.
            num_cpus: CPUs that this process may run on.
        """
        seen = len(inventory.gpus)
        if seen > self.num_gpus:
            yield (
                f"Slurm gave this job {self.num_gpus} GPUs and {seen} can be seen: devices are not enforced here "
                "(ConstrainDevices=yes in cgroup.conf does), so that scripts can reach those of other jobs"
            )
        elif seen < self.num_gpus:
            why = f": {inventory.no_gpus}" if inventory.no_gpus else ""
            yield f"Slurm gave this job {self.num_gpus} GPUs, and the driver shows {seen}{why}"
        if 0 < self.num_cpus < num_cpus:
            yield (
                f"Slurm gave this job {self.num_cpus} CPUs and it may run on {num_cpus}: jobs are not bound to theirs "
                "(TaskPlugin=task/affinity does that), so that they can slow each other down"
            )


def read_allocation() -> Allocation | None:
    """This process's; None where it runs in no job of Slurm's, or on a login node."""
    job_id = _number("SLURM_JOB_ID")
    if not job_id or "SLURMD_NODENAME" not in os.environ:
        return None
    names_gpus = "CUDA_VISIBLE_DEVICES" in os.environ
    return Allocation(job_id, _number("SLURM_GPUS_ON_NODE"), _number("SLURM_CPUS_ON_NODE"), names_gpus)


def _number(variable: str) -> int:
    value = os.environ.get(variable, "")
    return int(value) if value.isdecimal() else 0
