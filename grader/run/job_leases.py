"""The devices and cores of a job, waited for and held: a runtime adds how long its own ending takes."""

from __future__ import annotations

import os
from collections.abc import Callable

from grader.launch.bounds import answer_s
from grader.run.devices.lease import Lease
from grader.run.devices.leases import Devices, Wait
from grader.run.devices.need import Need
from grader.run.runtime import Job, Progress


def lease_devices(
    devices: Devices, job: Job, after_s: float, on_progress: Callable[[Progress], None]
) -> Lease:
    """Wait for the devices and cores of a job, and report how many wait before it.

    Args:
        devices: of this host; job: what needs them, on all its nodes.
        after_s: seconds that they are held at most beyond the end of the run.
        on_progress: called while it waits.
    """

    def report(wait: Wait) -> None:
        on_progress(Progress(f"wait for devices, {wait.ahead} ahead", wait.waited_s))

    need = Need(
        wall_s=job.limits.wall_s + answer_s(job.gpus_per_node) + after_s,
        num_gpus=job.gpus_per_node * job.nnodes,
        num_cores=_num_cores(devices, job),
        owner=job.attempt,
    )
    return devices.lease(need, on_wait=report)


def _num_cores(devices: Devices, job: Job) -> int:
    num_ranks = job.nproc_per_node * job.nnodes
    there = len(os.sched_getaffinity(0))
    if not job.gpus_per_node:
        return min(num_ranks * job.cores_per_rank, there)
    # Who takes more than the share of its GPUs keeps others from theirs.
    share = there // max(1, len(devices.inventory().gpus))
    return min(num_ranks * max(1, min(job.cores_per_rank, share)), there)
