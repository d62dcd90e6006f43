"""Find the requests whose processes have ended or hang, so that nobody waits for them for ever.

Works on an opened book. Never signals a process and never touches a device: it tells who was left without a holder.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from grader.run.devices.heartbeat_file import HeartbeatFile, last_heartbeat, lives
from grader.run.devices.lease_book import Held, LeaseBook, Ticket

_SILENT_S = 10.0
"""One that waits gives a sign of life each second; after this long without any it is passed over."""


@dataclass(frozen=True, slots=True)
class AbandonedLease:
    """A set whose holder has ended, or is so far over its wall limit that it must be taken for hung.

    Attributes:
        token: the lease's token; whatever was started under it has to end before its devices are handed on.
        owner, pid, started: who held it. gpus, cpus: what.
        hung: the process still lives, and has lost its lease.
    """

    token: int
    owner: str
    pid: int
    started: int
    gpus: tuple[str, ...]
    cpus: tuple[int, ...]
    hung: bool


@dataclass(slots=True)
class LeaseTakeover:
    """An abandoned set in our hands: nobody else settles it while the heartbeat file is ours."""

    ticket: Ticket
    abandoned: AbandonedLease
    heartbeat: HeartbeatFile


def take_over_abandoned(
    book: LeaseBook, now_s: float, overdue_s: float, leave: Collection[int]
) -> list[LeaseTakeover]:
    """Drop the waiting whose process has ended, and take over the sets that were abandoned.

    Args:
        book: the opened book.
        now_s: the monotonic clock.
        overdue_s: seconds over its wall limit after which a living holder loses its lease.
        leave: tickets to leave alone.

    Returns:
        What was abandoned, its tickets still in the book; the caller settles each, then removes its ticket.
    """
    takeovers = []
    for ticket in list(book.tickets.values()):
        path = book.heartbeat(ticket.number)
        if ticket.number in leave:
            continue
        held = ticket.held
        if lives(path):
            if held is not None and now_s > held.until_s + overdue_s:
                takeovers.append(_takeover(ticket, held, HeartbeatFile.replace(path, now_s), hung=True))
        elif held is None:
            del book.tickets[ticket.number]
            path.unlink(missing_ok=True)
        elif (line := HeartbeatFile.inherit(path) or _missing(book, ticket, now_s)) is not None:
            takeovers.append(_takeover(ticket, held, line, hung=False))
    for stray in book.folder.glob("*.alive"):
        if stray.stem.isdigit() and int(stray.stem) not in book.tickets and not lives(stray):
            stray.unlink(missing_ok=True)
    return takeovers


def _missing(book: LeaseBook, ticket: Ticket, now_s: float) -> HeartbeatFile | None:
    path = book.heartbeat(ticket.number)
    # Its holder was about to close it, or somebody removed it; where it is there after all, somebody looks at it.
    return None if path.exists() else HeartbeatFile.create(path, now_s)


def _takeover(ticket: Ticket, held: Held, line: HeartbeatFile, *, hung: bool) -> LeaseTakeover:
    abandoned = AbandonedLease(
        held.token, ticket.owner, ticket.pid, ticket.started, held.gpus, held.cpus, hung
    )
    return LeaseTakeover(ticket, abandoned, line)


def silent(book: LeaseBook, ticket: Ticket, now_s: float) -> bool:
    """Whether one that waits has given no sign of life for long: stopped, or stuck. It keeps its place."""
    sign = last_heartbeat(book.heartbeat(ticket.number))
    return sign is not None and now_s > sign[0] + _SILENT_S
