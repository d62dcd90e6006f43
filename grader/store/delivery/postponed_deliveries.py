"""Deliveries whose time had not come, and now has: they need not wait until somebody looks at them again."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Connection, update

from grader.store.clock import database_now
from grader.store.tables import DeliveryRow
from grader.store.tables.delivery import DeliveryState


def hasten(connection: Connection, course_id: int, channels: Collection[str]) -> None:
    """Let what was put off in a course be tried now, within a transaction of the caller's."""
    connection.execute(
        update(DeliveryRow)
        .where(
            DeliveryRow.course_id == course_id,
            DeliveryRow.channel.in_(channels),
            DeliveryRow.state == DeliveryState.WAITING,
            DeliveryRow.due_at > database_now(),
            # What was never tried waits to be collected.
            DeliveryRow.tried_at.is_not(None),
        )
        .values(due_at=database_now())
    )
