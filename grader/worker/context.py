"""What all processes of one worker know of it: name, folder, settings, devices. Made before they are forked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from grader.settings.schema import Settings
from grader.store.queue.claims import needs_of
from grader.worker.shared_state import SharedState
from grader.worker.time_left import TimeLimits


@dataclass(frozen=True, slots=True)
class WorkerContext:
    """One worker.

    Attributes:
        worker: its name.
        folder: for what it makes while it judges; each process that does works in one below.
        shared: what its processes tell each other.
        cpu: whether it takes what needs no device, besides what this host's devices can serve.
        num_gpus: how many devices there are, fit or not.
        server: address of the service that it asks; "": it asks the database.
        polls: whether it asks for attempts by itself, instead of waiting for messages that say that there are some.
        until: when it has to have finished, in seconds since 1970; None: it stays.
        limits: how long runs may take, where it has to have finished.
    """

    worker: str
    folder: Path
    settings: Settings
    shared: SharedState
    cpu: bool = True
    num_gpus: int = 0
    server: str = ""
    polls: bool = False
    until: float | None = None
    limits: TimeLimits = ()

    @property
    def subscribed_needs(self) -> tuple[str, ...]:
        """What it listens for: all that this host could ever take, also while a device is unfit."""
        return needs_of(self.num_gpus, cpu=self.cpu)

    @property
    def claimable_needs(self) -> tuple[str, ...]:
        """What may be claimed. Of several attempts that want devices each waits its turn on this host's leases."""
        return needs_of(self.shared.num_gpus, cpu=self.cpu)
