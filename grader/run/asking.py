"""What every runtime asks for in the same words: the launcher's spec of a job, and a lease of what the job runs on.

Knows no runtime; each adds what only it has (folders, users, networks, how long its own ending takes).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from grader.launch.spec import LaunchSpec
from grader.run.devices.lease import Lease
from grader.run.devices.leases import Devices, Wait
from grader.run.devices.need import Need
from grader.run.runtime import Job, Progress


def spec_of(job: Job, **own: Any) -> LaunchSpec:
    """A job as the launcher is told of it; `own`: the fields of `LaunchSpec` that are the runtime's to say."""
    return LaunchSpec(
        attempt=job.attempt,
        launcher=job.launcher,
        nproc_per_node=job.nproc_per_node,
        entry_point=job.entry_point,
        argv=job.argv,
        wall_s=job.limits.wall_s,
        memory_bytes=job.limits.memory_bytes,
        log_bytes=job.limits.log_bytes,
        seed=job.seed,
        probe=job.probe,
        secret=job.secret,
        model_size=job.model_size,
        **own,
    )


def lease_for(devices: Devices, job: Job, after_s: float, on_progress: Callable[[Progress], None]) -> Lease:
    """Wait for the devices and cores of a job, and tell how many wait before it.

    Args:
        devices: of this host; job: what needs them, on all its nodes.
        after_s: seconds that they are held at most beyond the job's wall limit.
        on_progress: told while it waits.
    """

    def tell(wait: Wait) -> None:
        on_progress(Progress(f"wait for devices, {wait.ahead} ahead", wait.waited_s))

    need = Need(
        wall_s=job.limits.wall_s + after_s,
        num_gpus=job.gpus_per_node * job.nnodes,
        num_cores=min(job.nproc_per_node * job.nnodes, len(os.sched_getaffinity(0))),
        owner=job.attempt,
    )
    return devices.lease(need, on_wait=tell)
