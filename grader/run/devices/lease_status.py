"""Who holds and who waits, for people: read from the book, without its lock and without touching a thing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from grader.run.devices.heartbeat_file import lives
from grader.run.devices.lease_book import read_book


@dataclass(frozen=True, slots=True)
class LeaseStatus:
    """One request.

    Attributes:
        state: `holds`, `waits`, or `ended`: its process is gone and the next one that asks will clean up after it.
        owner, pid, num_gpus, num_cores, wall_s: who asked for what; since_unix_s: since when it waits or holds.
        token, gpus, cpus: what it holds; None and () while it waits.
    """

    state: str
    owner: str
    pid: int
    num_gpus: int
    num_cores: int
    wall_s: float
    since_unix_s: float
    token: int | None
    gpus: tuple[str, ...]
    cpus: tuple[int, ...]


def lease_statuses(folder: Path) -> tuple[LeaseStatus, ...]:
    """All requests, first come first; () where no device was ever leased.

    Raises:
        InfraError: the book can't be read.
    """
    book = read_book(folder)
    found = []
    for _number, ticket in sorted(book.tickets.items()):
        held = ticket.held
        alive = lives(book.heartbeat(ticket.number))
        found.append(
            LeaseStatus(
                "ended" if not alive else "waits" if held is None else "holds",
                ticket.owner,
                ticket.pid,
                ticket.num_gpus,
                ticket.num_cores,
                ticket.wall_s,
                ticket.since_unix_s if held is None else held.since_unix_s,
                None if held is None else held.token,
                () if held is None else held.gpus,
                () if held is None else held.cpus,
            )
        )
    return tuple(found)
