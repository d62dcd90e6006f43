"""The outbox: messages leave it at least once, and each is only a hint.

A relay takes some, sends them, and says so; what was taken and not said is taken again. Sending happens outside of any
transaction, so that a slow broker holds up nobody. Knows no broker.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import func, or_, select, update

from grader.store.clock import database_now
from grader.store.database import Store
from grader.store.tables import AttemptRow, OutboxRow
from grader.store.tables.attempt import AttemptState

TAKEN_S = 10.0


@dataclass(frozen=True, slots=True)
class OutboxMessage:
    """A hint: `attempt` (something waits that needs `need`, in `lane`) or `judge_error` (staff should look)."""

    id: int
    topic: str
    attempt_id: int
    need: str
    lane: str


def publish(
    store: Store, send: Callable[[OutboxMessage], None], *, limit: int = 100, taken_s: float = TAKEN_S
) -> int:
    """Send what waits in the outbox, oldest first, and return how many were sent.

    Whatever `send` raises goes on to the caller; what was sent until then is marked, the rest is sent again later.
    """
    messages = take(store, limit=limit, taken_s=taken_s)
    sent: list[int] = []
    try:
        for message in messages:
            send(message)
            sent.append(message.id)
    finally:
        mark_sent(store, sent)
        if len(sent) < len(messages):
            _put_back(store, [message.id for message in messages[len(sent) :]])
    return len(sent)


def take(store: Store, *, limit: int = 100, taken_s: float = TAKEN_S) -> tuple[OutboxMessage, ...]:
    """Messages to send now; nobody else takes them for `taken_s` seconds."""
    with store.write() as connection:
        chosen = (
            select(OutboxRow.id)
            .where(
                OutboxRow.sent_at.is_(None),
                or_(OutboxRow.taken_until.is_(None), OutboxRow.taken_until <= database_now()),
            )
            .order_by(OutboxRow.id)
            .limit(limit)
            .with_for_update(skip_locked=True)
        )
        ids = list(connection.execute(chosen).scalars())
        if not ids:
            return ()
        connection.execute(
            update(OutboxRow)
            .where(OutboxRow.id.in_(ids))
            .values(taken_until=database_now(taken_s), tries=OutboxRow.tries + 1)
        )
        rows = connection.execute(
            select(OutboxRow.id, OutboxRow.topic, OutboxRow.attempt_id, AttemptRow.need, AttemptRow.lane)
            .join(AttemptRow, AttemptRow.id == OutboxRow.attempt_id)
            .where(OutboxRow.id.in_(ids))
            .order_by(OutboxRow.id)
        )
        return tuple(OutboxMessage(*row) for row in rows)


def mark_sent(store: Store, ids: list[int]) -> None:
    """Say that these messages are with the broker."""
    if ids:
        with store.write() as connection:
            connection.execute(
                update(OutboxRow)
                .where(OutboxRow.id.in_(ids))
                .values(sent_at=database_now(), taken_until=None)
            )


def send_again(store: Store, attempt_id: int) -> bool:
    """The message for this attempt was used up by another one's turn: send it again where the attempt still waits.

    True: it will be sent.
    """
    newest = (
        select(func.max(OutboxRow.id))
        .join(AttemptRow, AttemptRow.id == OutboxRow.attempt_id)
        .where(
            AttemptRow.id == attempt_id,
            AttemptRow.state == AttemptState.QUEUED,
            OutboxRow.topic == "attempt",
        )
        .scalar_subquery()
    )
    with store.write() as connection:
        again = update(OutboxRow).where(OutboxRow.id == newest, OutboxRow.sent_at.is_not(None))
        return bool(connection.execute(again.values(sent_at=None, taken_until=None)).rowcount)


def _put_back(store: Store, ids: list[int]) -> None:
    with store.write() as connection:
        connection.execute(update(OutboxRow).where(OutboxRow.id.in_(ids)).values(taken_until=None))
