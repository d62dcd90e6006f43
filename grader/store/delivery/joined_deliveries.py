"""Deliveries that are told together: what waits for one receiver on one topic goes with the first of them."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import or_, select, update

from grader.store.clock import database_now
from grader.store.database import Store
from grader.store.delivery.deliveries import LONGEST_WAIT_S, TAKEN_COLUMNS, Delivery, free, taken_delivery
from grader.store.tables import DeliveryRow
from grader.store.tables.delivery import DeliveryState


def join_waiting(store: Store, delivery: Delivery, *, limit: int = 500) -> tuple[Delivery, ...]:
    """All that is to be told to this one's receiver on its topic and course, the oldest first: it, and what joins it.

    Those end with it. What joined it at an earlier try is among them.
    """
    with store.write() as connection:
        waiting = (
            select(DeliveryRow.id)
            .where(
                DeliveryRow.channel == delivery.channel,
                DeliveryRow.receiver == delivery.receiver,
                DeliveryRow.topic == delivery.topic,
                DeliveryRow.course_id.is_not_distinct_from(delivery.course_id),
                DeliveryRow.id != delivery.id,
                DeliveryRow.joined_id.is_(None),
                DeliveryRow.state == DeliveryState.WAITING,
                free(DeliveryRow),
            )
            .order_by(DeliveryRow.id)
            .limit(limit)
            .with_for_update(skip_locked=True)
        )
        ids = list(connection.execute(waiting).scalars())
        if ids:
            connection.execute(
                update(DeliveryRow).where(DeliveryRow.id.in_(ids)).values(joined_id=delivery.id)
            )
        now = connection.execute(select(database_now())).scalar_one()
        together = or_(DeliveryRow.id == delivery.id, DeliveryRow.joined_id == delivery.id)
        rows = connection.execute(TAKEN_COLUMNS.where(together).order_by(DeliveryRow.id))
        return tuple(taken_delivery(row, now) for row in rows)


def release(store: Store, delivery: Delivery, ids: Collection[int], *, for_s: float) -> None:
    """Let those of them that joined it go their own way, in so many seconds, as `postpone` does."""
    due = database_now(min(for_s, LONGEST_WAIT_S))
    with store.write() as connection:
        connection.execute(
            update(DeliveryRow)
            .where(DeliveryRow.joined_id == delivery.id, DeliveryRow.id.in_(ids))
            .values(joined_id=None, due_at=due, started_at=due, tried_at=database_now())
        )
