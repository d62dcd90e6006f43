"""What a worker's host has to give just now: devices, leases, containers. For people and Prometheus; looks only."""

from __future__ import annotations

from dataclasses import replace

from grader.errors import GraderError
from grader.run.devices.leases import Devices
from grader.settings.schema import Settings
from grader.store.queue.queue import WorkerHost


def host_stats(settings: Settings, *, num_gpus: int) -> WorkerHost:
    """The host's figures; what cannot be had is None.

    Args:
        settings: whose state folder and runtime it is.
        num_gpus: devices that are fit for use, as the worker knows already.
    """
    seen = WorkerHost(num_gpus=num_gpus)
    try:
        entries = Devices(settings.local_root).listing()
        seen = replace(
            seen,
            num_leases=sum(entry.state == "holds" for entry in entries),
            num_waiting=sum(entry.state == "waits" for entry in entries),
        )
        if settings.runtime == "docker":
            seen = replace(seen, num_containers=_num_containers(settings))
    except (GraderError, OSError):
        # Figures are no reason to stop; whether the engine answers is the health's to say.
        pass
    return seen


def _num_containers(settings: Settings) -> int:
    from grader.run.engine.client import connect
    from grader.run.engine.inspection import list_containers
    from grader.run.engine.ownership import Ownership

    client = connect()
    ownership = Ownership(settings.state_dir)
    try:
        return len(list_containers(client, ownership))
    finally:
        ownership.close()
        client.close()
