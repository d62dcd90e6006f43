"""Deliveries: what is to reach somebody outside, queued in the transaction in which it happened.

Each is tried until it is delivered or given up; one that was taken and never heard of again is taken anew. Of one
receiver on a channel one is under way at a time, the oldest first, so that a slow receiver holds up nobody but itself.
Knows no channel.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, and_, delete, exists, or_, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import aliased

from grader.store.clock import database_now
from grader.store.database import Store
from grader.store.tables.delivery import DeliveryRow, DeliveryState

LEASE_S = 300.0
"""How long a delivery is its taker's; longer than any channel takes for one."""
LONGEST_WAIT_S = 3600.0
"""What is put off is looked at again by then: dates are moved, and nobody tells what waits for them."""
KEPT_S = 90 * 86400.0
"""How long one that ended is kept, for the log and so that its key is not queued again."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """One that was taken.

    Attributes:
        tries: how often it was taken, this time included; with the id, who holds it.
        waited_s: since when it is tried, in seconds by the database's clock.
    """

    id: int
    channel: str
    receiver: str
    topic: str
    payload: dict[str, Any]
    course_id: int | None
    tries: int
    created_at: datetime
    waited_s: float


@dataclass(frozen=True, slots=True)
class LoggedDelivery:
    """One line of the log; see `grader.store.tables.delivery`."""

    id: int
    channel: str
    receiver: str
    topic: str
    state: DeliveryState
    created_at: datetime
    due_at: datetime
    tried_at: datetime | None
    tries: int
    answer: str | None


def enqueue(
    connection: Connection,
    channel: str,
    receiver: str,
    payload: dict[str, Any],
    *,
    key: str,
    course_id: int | None = None,
    not_before_s: float = 0.0,
) -> bool:
    """Queue a delivery in a transaction of the caller's; False: one with this key is queued, or was delivered.

    The payload's `topic`, where it has one, stands in the log, and is what waiting ones may be told together by.
    """
    make = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    due = database_now(not_before_s)
    statement = make(DeliveryRow).values(
        channel=channel,
        receiver=receiver,
        topic=payload.get("topic", ""),
        payload=payload,
        key=key,
        course_id=course_id,
        created_at=database_now(),
        due_at=due,
        started_at=due,
        state=DeliveryState.WAITING,
        tries=0,
    )
    once = statement.on_conflict_do_nothing(index_elements=["key"]).returning(DeliveryRow.id)
    return connection.execute(once).scalar_one_or_none() is not None


def take(store: Store, channel: str, *, limit: int = 1, lease_s: float = LEASE_S) -> tuple[Delivery, ...]:
    """Deliveries of a channel to try now, of each receiver its oldest; nobody else takes them for `lease_s` seconds."""
    chosen = _due(channel).order_by(DeliveryRow.due_at, DeliveryRow.id).limit(limit)
    with store.read() as connection:
        # Nobody waits for a writer's turn to learn that there is nothing to do.
        if connection.execute(chosen.limit(1)).first() is None:
            return ()
    with store.write() as connection:
        ids = list(connection.execute(chosen.with_for_update(skip_locked=True)).scalars())
        if not ids:
            return ()
        connection.execute(
            update(DeliveryRow)
            .where(DeliveryRow.id.in_(ids))
            .values(taken_until=database_now(lease_s), tried_at=database_now(), tries=DeliveryRow.tries + 1)
        )
        now = connection.execute(select(database_now())).scalar_one()
        rows = connection.execute(TAKEN_COLUMNS.where(DeliveryRow.id.in_(ids)).order_by(DeliveryRow.id))
        return tuple(taken_delivery(row, now) for row in rows)


def delivered(store: Store, delivery: Delivery, answer: str = "") -> bool:
    """Say that it has arrived, with what the other side answered; False: its lease has ended."""
    return _end(store, delivery, DeliveryState.DELIVERED, answer)


def failed(store: Store, delivery: Delivery, answer: str, *, retry_in_s: float | None) -> bool:
    """Say that it has not: to be tried again in so many seconds, or (None) given up; False: its lease has ended."""
    if retry_in_s is None:
        return _end(store, delivery, DeliveryState.GIVEN_UP, answer)
    with store.write() as connection:
        return _change(connection, delivery, due_at=database_now(retry_in_s), answer=answer)


def postpone(store: Store, delivery: Delivery, reason: str, *, for_s: float) -> bool:
    """Say that its time has not come: tried in so many seconds as if it had been queued then; no try is lost.

    At the latest in `LONGEST_WAIT_S`.
    """
    due = database_now(min(for_s, LONGEST_WAIT_S))
    with store.write() as connection:
        return _change(connection, delivery, due_at=due, started_at=due, answer=reason)


def rest_receiver(store: Store, delivery: Delivery, *, for_s: float) -> None:
    """Try nothing else of this one's receiver for so many seconds: it does not answer."""
    with store.write() as connection:
        connection.execute(
            update(DeliveryRow)
            .where(
                DeliveryRow.channel == delivery.channel,
                DeliveryRow.receiver == delivery.receiver,
                DeliveryRow.state == DeliveryState.WAITING,
                DeliveryRow.id != delivery.id,
                DeliveryRow.due_at < database_now(for_s),
            )
            .values(due_at=database_now(for_s))
        )


def retry(store: Store, delivery_id: int, *, course_id: int) -> bool:
    """Try one of a course again at once, with all the patience of a new one; False: it is delivered, or under way."""
    with store.write() as connection:
        changed = connection.execute(
            update(DeliveryRow)
            .where(
                DeliveryRow.id == delivery_id,
                DeliveryRow.course_id == course_id,
                DeliveryRow.state != DeliveryState.DELIVERED,
                DeliveryRow.joined_id.is_(None),
                free(DeliveryRow),
            )
            .values(state=DeliveryState.WAITING, due_at=database_now(), started_at=database_now())
        ).rowcount
        if changed:
            connection.execute(
                update(DeliveryRow)
                .where(DeliveryRow.joined_id == delivery_id, DeliveryRow.state == DeliveryState.GIVEN_UP)
                .values(state=DeliveryState.WAITING)
            )
        return bool(changed)


def deliveries_of(
    store: Store,
    course_id: int,
    channel: str,
    *,
    receiver: str | None = None,
    state: DeliveryState | None = None,
    limit: int = 100,
) -> tuple[LoggedDelivery, ...]:
    """The last deliveries of a course on a channel, newest first."""
    statement = select(
        DeliveryRow.id,
        DeliveryRow.channel,
        DeliveryRow.receiver,
        DeliveryRow.topic,
        DeliveryRow.state,
        DeliveryRow.created_at,
        DeliveryRow.due_at,
        DeliveryRow.tried_at,
        DeliveryRow.tries,
        DeliveryRow.answer,
    ).where(DeliveryRow.course_id == course_id, DeliveryRow.channel == channel)
    if receiver is not None:
        statement = statement.where(DeliveryRow.receiver == receiver)
    if state is not None:
        statement = statement.where(DeliveryRow.state == state)
    with store.read() as connection:
        rows: Iterable[Sequence[Any]] = connection.execute(
            statement.order_by(DeliveryRow.id.desc()).limit(limit)
        )
        return tuple(LoggedDelivery(*row) for row in rows)


def forget_ended(store: Store, *, kept_s: float = KEPT_S) -> int:
    """Drop what ended longer ago than that; returns how many."""
    old = and_(DeliveryRow.state != DeliveryState.WAITING, DeliveryRow.created_at < database_now(-kept_s))
    with store.write() as connection:
        return connection.execute(delete(DeliveryRow).where(old)).rowcount


def _due(channel: str) -> Any:
    before = aliased(DeliveryRow)
    earlier = exists().where(
        before.channel == channel,
        before.receiver == DeliveryRow.receiver,
        before.state == DeliveryState.WAITING,
        before.joined_id.is_(None),
        before.id != DeliveryRow.id,
        or_(
            before.taken_until > database_now(),
            and_(before.due_at <= database_now(), before.id < DeliveryRow.id),
        ),
    )
    return select(DeliveryRow.id).where(
        DeliveryRow.channel == channel,
        DeliveryRow.state == DeliveryState.WAITING,
        DeliveryRow.joined_id.is_(None),
        DeliveryRow.due_at <= database_now(),
        free(DeliveryRow),
        ~earlier,
    )


def free(row: Any) -> Any:
    """That nobody is delivering it; `row`: the table, as it is named in the statement."""
    return or_(row.taken_until.is_(None), row.taken_until <= database_now())


def _end(store: Store, delivery: Delivery, state: DeliveryState, answer: str) -> bool:
    with store.write() as connection:
        ended = _change(connection, delivery, state=state, answer=answer)
        if ended:
            connection.execute(
                update(DeliveryRow)
                .where(DeliveryRow.joined_id == delivery.id, DeliveryRow.state == DeliveryState.WAITING)
                .values(state=state, tried_at=database_now(), answer=f"together with {delivery.id}")
            )
        return ended


def _change(connection: Connection, delivery: Delivery, **values: Any) -> bool:
    held = (
        DeliveryRow.id == delivery.id,
        DeliveryRow.tries == delivery.tries,
        DeliveryRow.state == DeliveryState.WAITING,
    )
    return bool(
        connection.execute(update(DeliveryRow).where(*held).values(taken_until=None, **values)).rowcount
    )


def taken_delivery(row: Row[*tuple[Any, ...]], now: datetime) -> Delivery:
    """Of the columns below, at the database's time."""
    return Delivery(
        id=row.id,
        channel=row.channel,
        receiver=row.receiver,
        topic=row.topic,
        payload=row.payload,
        course_id=row.course_id,
        tries=row.tries,
        created_at=row.created_at,
        waited_s=(now - row.started_at).total_seconds(),
    )


TAKEN_COLUMNS = select(
    DeliveryRow.id,
    DeliveryRow.channel,
    DeliveryRow.receiver,
    DeliveryRow.topic,
    DeliveryRow.payload,
    DeliveryRow.course_id,
    DeliveryRow.tries,
    DeliveryRow.created_at,
    DeliveryRow.started_at,
)
