"""Which coordinator a worker has: the database, or the service that it was given."""

from __future__ import annotations

from grader.settings.schema import Settings
from grader.worker.coordinator import Coordinator
from grader.worker.database_coordinator import DatabaseCoordinator
from grader.worker.http_coordinator import HttpCoordinator


def open_coordinator(settings: Settings, worker: str, server: str) -> Coordinator:
    """A coordinator of this process's own; `server` "": the database of the settings.

    Raises:
        UsageError: see `HttpCoordinator`.
    """
    return HttpCoordinator(settings, worker, server) if server else DatabaseCoordinator(settings, worker)


def wait_until_ready(settings: Settings, worker: str, server: str) -> None:
    """Wait until it answers, however long that takes.

    Raises:
        UsageError: the service does not let this worker in. InfraError: it is of another version.
    """
    coordinator = open_coordinator(settings, worker, server)
    try:
        coordinator.wait_until_ready()
    finally:
        coordinator.close()
