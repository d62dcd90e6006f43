"""A fork server whose ranks take themselves for hosts of their own with one GPU each, so that they can share this one.

NCCL refuses two ranks on one GPU of one host. What differs from a host with several is the number that each rank is
told to choose its GPU by, and that what they send goes by the loopback interface; nothing is leased, so that several
runs fit side by side. Started like `grader.launch.servers.fork_server`.
"""

from __future__ import annotations

import runpy

from grader.launch.ranks import environment
from grader.launch.spec import LaunchSpec

_REAL = environment.rank_environment


def _of_own_host(spec: LaunchSpec, rank: int, port: int) -> dict[str, str]:
    variables = _REAL(spec, rank, port)
    # Runs without a lease see no GPU otherwise.
    for name in ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"):
        variables.pop(name, None)
    return variables | {"LOCAL_WORLD_SIZE": "1", "NCCL_HOSTID": str(rank)}


if __name__ == "__main__":
    environment.rank_environment = _of_own_host
    setattr(LaunchSpec, "local_rank", lambda _spec, _rank: 0)  # noqa: B010
    runpy.run_module("grader.launch.servers.fork_server", run_name="__main__")
