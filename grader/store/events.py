"""Writing and reading what happened: the live view of attempts, the audit of everything else.

Events of one attempt are numbered 1, 2, 3, … in the order in which they became visible, because the number is taken
under the attempt's row lock; so a reader that has seen number n asks for what comes after n and misses nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, and_, bindparam, func, insert, or_, select, update

from grader.store.clock import database_now
from grader.store.courses.archived_courses import refuse_archived
from grader.store.database import Store
from grader.store.tables import AttemptRow, EventRow
from grader.store.tables.attempt import AttemptState


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """One event; see `grader.store.tables.event`."""

    id: int
    seq: int
    kind: str
    at: datetime
    actor_id: int | None
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class NewEvents:
    """What is new of an attempt: its state, the number of its last event, and the events asked for."""

    state: AttemptState
    last: int
    events: tuple[StoredEvent, ...]


# Statements of the busiest operations are made once: making them takes longer than running them.
ADD_EVENT = insert(EventRow).values(at=database_now())


def add_event(
    connection: Connection,
    attempt_id: int,
    seq: int,
    kind: str,
    *,
    actor_id: int | None = None,
    **data: Any,
) -> None:
    """Write one event of an attempt under a number that the caller took by raising `AttemptRow.event_seq`."""
    connection.execute(
        ADD_EVENT, {"attempt_id": attempt_id, "seq": seq, "kind": kind, "actor_id": actor_id, "data": data}
    )


def audit(connection: Connection, subject: str, kind: str, *, actor_id: int | None, **data: Any) -> None:
    """Write one event that is about no attempt, such as `course:3`, `due_date_moved`.

    Raises:
        CourseArchivedError: the course is archived, where this is not done.
    """
    refuse_archived(connection, subject, (kind,))
    connection.execute(
        insert(EventRow).values(subject=subject, kind=kind, at=database_now(), actor_id=actor_id, data=data)
    )


def add_live_events(
    store: Store, attempt_id: int, lease_token: int, events: Sequence[tuple[str, dict[str, Any]]]
) -> bool:
    """A worker's live signs, `(kind, data)` each, in order; False: its lease has ended, nothing was written.

    The attempt's phase changes together with the events of that phase: nobody reads what a run printed while the
    attempt still says that it is being prepared.
    """
    phases = [data["phase"] for kind, data in events if kind == "phase"]
    changed = {"phase": phases[-1]} if phases else {}
    with store.write() as connection:
        last = connection.execute(
            update(AttemptRow)
            .where(
                AttemptRow.id == attempt_id,
                AttemptRow.lease_token == lease_token,
                AttemptRow.state == AttemptState.RUNNING,
            )
            .values(event_seq=AttemptRow.event_seq + len(events), **changed)
            .returning(AttemptRow.event_seq)
        ).scalar_one_or_none()
        if last is None:
            return False
        if events:
            first = last - len(events) + 1
            connection.execute(
                insert(EventRow).values(at=database_now()),
                [
                    {"attempt_id": attempt_id, "seq": first + index, "kind": kind, "data": data}
                    for index, (kind, data) in enumerate(events)
                ],
            )
        return True


def events_of(store: Store, attempt_id: int, *, after: int = 0, limit: int = 500) -> tuple[StoredEvent, ...]:
    """Events of an attempt that come after number `after`, in order."""
    with store.read() as connection:
        rows = connection.execute(
            _COLUMNS.where(EventRow.attempt_id == attempt_id, EventRow.seq > after)
            .order_by(EventRow.seq)
            .limit(limit)
        )
        return tuple(StoredEvent(*row) for row in rows)


def new_events(store: Store, after: Mapping[int, int], *, limit: int = 5000) -> dict[int, NewEvents]:
    """What happened to several attempts since, read in one go for everybody who watches.

    Args:
        store: where.
        after: attempt → number of the last event that is known.
        limit: events altogether; the rest comes with the next call.
    """
    with store.read() as connection:
        heads = connection.execute(
            select(AttemptRow.id, AttemptRow.state, AttemptRow.event_seq).where(
                AttemptRow.id.in_(list(after))
            )
        ).all()
        behind = [row.id for row in heads if row.event_seq > after[row.id]]
        found: dict[int, list[StoredEvent]] = {}
        if behind:
            newer = or_(*(and_(EventRow.attempt_id == one, EventRow.seq > after[one]) for one in behind))
            for row in connection.execute(
                _COLUMNS.add_columns(EventRow.attempt_id)
                .where(newer)
                .order_by(EventRow.attempt_id, EventRow.seq)
                .limit(limit)
            ):
                found.setdefault(row[6], []).append(StoredEvent(*row[:6]))
    return {row.id: NewEvents(row.state, row.event_seq, tuple(found.get(row.id, ()))) for row in heads}


def newest_events(store: Store, after: int) -> tuple[int, int]:
    """The number of the last event of anything, and that of the last change to anything which came after that one.

    What a run tells while it goes on changes nothing. 0: there is none.
    """
    with store.read() as connection:
        newest, changed = connection.execute(_NEWEST, {"after": after}).one()
    return newest or 0, changed or 0


def audit_of(
    store: Store,
    subject: str,
    *,
    kind: str | None = None,
    before: int | None = None,
    limit: int = 500,
) -> tuple[StoredEvent, ...]:
    """The last audit events about a subject, newest first; the next page is `before` the last id of this one.

    `kind`: of this one alone.
    """
    statement = _COLUMNS.where(EventRow.subject == subject)
    if kind is not None:
        statement = statement.where(EventRow.kind == kind)
    if before is not None:
        statement = statement.where(EventRow.id < before)
    with store.read() as connection:
        rows = connection.execute(statement.order_by(EventRow.id.desc()).limit(limit))
        return tuple(StoredEvent(*row) for row in rows)


LIVE_KINDS = ("phase", "epoch", "log")
"""What a worker tells of an attempt that runs."""
_NEWEST = select(
    select(func.max(EventRow.id)).scalar_subquery(),
    select(func.max(EventRow.id))
    .where(EventRow.id > bindparam("after"), EventRow.kind.not_in(LIVE_KINDS))
    .scalar_subquery(),
)
_COLUMNS = select(EventRow.id, EventRow.seq, EventRow.kind, EventRow.at, EventRow.actor_id, EventRow.data)
