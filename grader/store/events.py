"""Writing and reading what happened: the live view of attempts, the audit of everything else.

Events of one attempt are numbered 1, 2, 3, … in the order in which they became visible, because the number is taken
under the attempt's row lock; so a reader that has seen number n asks for what comes after n and misses nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, insert, select, update

from grader.store.clock import database_now
from grader.store.database import Store
from grader.store.tables import Attempt, Event
from grader.store.tables.attempt import AttemptState


@dataclass(frozen=True, slots=True)
class Happened:
    """One event; see `grader.store.tables.event`."""

    id: int
    seq: int
    kind: str
    at: datetime
    actor_id: int | None
    data: dict[str, Any]


# Statements of the busiest operations are made once: making them takes longer than running them.
NOTE = insert(Event).values(at=database_now())


def note(
    connection: Connection,
    attempt_id: int,
    seq: int,
    kind: str,
    *,
    actor_id: int | None = None,
    **data: Any,
) -> None:
    """Write one event of an attempt under a number that the caller took by raising `Attempt.event_seq`."""
    connection.execute(
        NOTE, {"attempt_id": attempt_id, "seq": seq, "kind": kind, "actor_id": actor_id, "data": data}
    )


def audit(connection: Connection, subject: str, kind: str, *, actor_id: int | None, **data: Any) -> None:
    """Write one event that is about no attempt, such as `course:3`, `due_date_moved`."""
    connection.execute(
        insert(Event).values(subject=subject, kind=kind, at=database_now(), actor_id=actor_id, data=data)
    )


def tell(store: Store, attempt_id: int, lease_token: int, told: Sequence[tuple[str, dict[str, Any]]]) -> bool:
    """A worker's live signs, `(kind, data)` each, in order; False: its lease has ended, nothing was written."""
    with store.write() as connection:
        last = connection.execute(
            update(Attempt)
            .where(
                Attempt.id == attempt_id,
                Attempt.lease_token == lease_token,
                Attempt.state == AttemptState.RUNNING,
            )
            .values(event_seq=Attempt.event_seq + len(told))
            .returning(Attempt.event_seq)
        ).scalar_one_or_none()
        if last is None:
            return False
        if told:
            first = last - len(told) + 1
            connection.execute(
                insert(Event).values(at=database_now()),
                [
                    {"attempt_id": attempt_id, "seq": first + index, "kind": kind, "data": data}
                    for index, (kind, data) in enumerate(told)
                ],
            )
        return True


def events_of(store: Store, attempt_id: int, *, after: int = 0, limit: int = 500) -> tuple[Happened, ...]:
    """Events of an attempt that come after number `after`, in order."""
    with store.read() as connection:
        rows = connection.execute(
            _COLUMNS.where(Event.attempt_id == attempt_id, Event.seq > after).order_by(Event.seq).limit(limit)
        )
        return tuple(Happened(*row) for row in rows)


def audit_of(store: Store, subject: str, *, limit: int = 500) -> tuple[Happened, ...]:
    """The last audit events about a subject, newest first."""
    with store.read() as connection:
        rows = connection.execute(
            _COLUMNS.where(Event.subject == subject).order_by(Event.id.desc()).limit(limit)
        )
        return tuple(Happened(*row) for row in rows)


_COLUMNS = select(Event.id, Event.seq, Event.kind, Event.at, Event.actor_id, Event.data)
