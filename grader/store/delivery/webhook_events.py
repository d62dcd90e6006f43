"""What webhooks are told, queued in the very transaction in which it happens. Sends nothing."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable
from typing import Any

from sqlalchemy import Connection, Row, select

from grader.store.database import Store
from grader.store.delivery.deliveries import enqueue
from grader.store.delivery.webhooks import CHANNEL, Webhook, read_webhooks, receiver_of
from grader.store.tables import AttemptRow, CourseTaskRow, GradeRow, StandingRow, WebhookRow
from grader.store.tables.webhook import WebhookEvent


def queue_test(store: Store, one: Webhook) -> None:
    """Queue an event that says nothing but that the receiver is reached."""
    with store.write() as connection:
        _queue(connection, [one], WebhookEvent.TEST, {}, key=secrets.token_hex(8))


def tell_judged(connection: Connection, attempt_ids: Collection[int]) -> None:
    """Queue what receivers are told of attempts that were judged and count."""
    rows = connection.execute(
        select(
            AttemptRow.id,
            AttemptRow.person_id,
            AttemptRow.course_task_id,
            CourseTaskRow.course_id,
            GradeRow.verdict,
            GradeRow.points,
            GradeRow.max_points,
        )
        .join(GradeRow, GradeRow.attempt_id == AttemptRow.id)
        .join(CourseTaskRow, CourseTaskRow.id == AttemptRow.course_task_id)
        .join(WebhookRow, WebhookRow.course_id == CourseTaskRow.course_id)
        .where(AttemptRow.id.in_(attempt_ids), AttemptRow.counts, WebhookRow.disabled_at.is_(None))
        .distinct()
    ).all()
    for row in rows:
        told = _facts(row.id, row.person_id, row.course_task_id, row)
        hooks = _listening(connection, row.course_id, WebhookEvent.ATTEMPT_JUDGED)
        _queue(connection, hooks, WebhookEvent.ATTEMPT_JUDGED, told, key=str(row.id))


def tell_grades(connection: Connection, course_task_id: int, person_ids: Collection[int]) -> None:
    """Queue what receivers are told of what counts now for these learners in a task."""
    course_id = connection.execute(
        select(CourseTaskRow.course_id).where(CourseTaskRow.id == course_task_id)
    ).scalar_one()
    hooks = _listening(connection, course_id, WebhookEvent.GRADE_CHANGED)
    if not hooks:
        return
    standings = {
        row.person_id: row
        for row in connection.execute(
            select(
                StandingRow.person_id,
                StandingRow.attempt_id,
                StandingRow.verdict,
                StandingRow.points,
                StandingRow.max_points,
            ).where(StandingRow.course_task_id == course_task_id, StandingRow.person_id.in_(person_ids))
        )
    }
    for person_id in sorted(person_ids):
        row = standings.get(person_id)
        told = _facts(None if row is None else row.attempt_id, person_id, course_task_id, row)
        _queue(connection, hooks, WebhookEvent.GRADE_CHANGED, told, key=secrets.token_hex(8))


def _facts(
    attempt_id: int | None, person_id: int, course_task_id: int, row: Row[*tuple[Any, ...]] | None
) -> dict[str, Any]:
    return {
        "attempt": attempt_id,
        "person": person_id,
        "course_task": course_task_id,
        "verdict": None if row is None else row.verdict.value,
        "points": None if row is None else row.points,
        "max_points": None if row is None else row.max_points,
    }


def _queue(
    connection: Connection, hooks: Iterable[Webhook], event: WebhookEvent, told: dict[str, Any], *, key: str
) -> None:
    for one in hooks:
        enqueue(
            connection,
            CHANNEL,
            receiver_of(one.id),
            {"topic": event.value, "webhook": one.id, **told},
            key=f"webhook:{one.id}:{event.value}:{key}",
            course_id=one.course_id,
        )


def _listening(connection: Connection, course_id: int, event: WebhookEvent) -> list[Webhook]:
    found = read_webhooks(connection, course_id)
    return [one for one in found if one.disabled_at is None and event.value in one.events]
