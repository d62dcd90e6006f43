"""The one door to this host's devices: leases in a folder of this host, GPUs that the runtime's PyTorch runs on."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from grader.run.devices.abandoned_leases import AbandonedLease
from grader.run.devices.leases import Devices
from grader.run.torch_builds import torch_build
from grader.settings import settings


def host_devices(
    runtime: str | None = None, reclaim: Callable[[AbandonedLease], None] | None = None
) -> Devices:
    """The devices of this host; touches nothing yet.

    Args:
        runtime: where submissions run; None: as configured.
        reclaim: ends what a dead holder left running, see `Devices`.
    """
    return Devices(
        settings().local_root,
        reclaim=reclaim,
        torch_build=partial(torch_build, runtime or settings().runtime),
    )
