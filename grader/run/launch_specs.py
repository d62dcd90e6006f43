"""A job in the launcher's words; each runtime adds what only it has: folders, users, networks."""

from __future__ import annotations

from typing import Any

from grader.launch.spec import LaunchSpec
from grader.run.rank_variables import rank_variables
from grader.run.runtime import Job
from grader.settings import settings


def launch_spec(job: Job, **own: Any) -> LaunchSpec:
    """A job as a launch spec; `own`: the fields of `LaunchSpec` that are the runtime's to say."""
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
        sealed=True,
        sampling_seed=job.sampling_seed if job.nnodes > 1 else 0,
        model_size=job.model_size,
        variables=rank_variables(settings().rank_env),
        traced_steps=job.traced_steps,
        shims=job.shims,
        **own,
    )
