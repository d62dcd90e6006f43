"""What a receiver is told: the event as it was when it happened, with the names that things have now.

Of a task that is graded anonymously those are pseudonyms.
"""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import select

from grader.store.courses.courses import CourseFacts, course_task
from grader.store.database import Store
from grader.store.delivery.deliveries import Delivery
from grader.store.grading.pseudonyms import anonymous_tasks, pseudonym
from grader.store.tables import EnrolmentRow, PersonRow
from grader.store.tables.webhook import WebhookEvent


def event_body(store: Store, site: str, course: CourseFacts, delivery: Delivery) -> bytes | None:
    """JSON, UTF-8; None: of somebody who is gone nothing is told any more."""
    told = delivery.payload
    data: dict[str, Any] = {"course": {"id": course.id, "name": course.name, "title": course.title}}
    if delivery.topic != WebhookEvent.TEST:
        person, task = _person(store, course.id, told["person"]), course_task(store, told["course_task"])
        if person is None or task is None:
            return None
        key = anonymous_tasks(store, course.id).get(task.id)
        if key is not None:
            name = pseudonym(key, told["person"])
            person = {"id": None, "login": name, "name": name, "external_id": None}
        attempt = told["attempt"]
        data |= {
            "person": person,
            "task": {"id": task.id, "name": task.task, "title": task.terms.title},
            "attempt": None if attempt is None else {"id": attempt, "url": f"{site}/attempts/{attempt}"},
            **{name: told[name] for name in ("verdict", "points", "max_points")},
        }
    event = {"type": delivery.topic, "timestamp": delivery.created_at.isoformat(), "data": data}
    return json.dumps(event, ensure_ascii=False).encode()


def _person(store: Store, course_id: int, person_id: int) -> dict[str, Any] | None:
    statement = (
        select(PersonRow.id, PersonRow.login, PersonRow.name, EnrolmentRow.external_id)
        .outerjoin(
            EnrolmentRow, (EnrolmentRow.person_id == PersonRow.id) & (EnrolmentRow.course_id == course_id)
        )
        .where(PersonRow.id == person_id)
    )
    with store.read() as connection:
        row = connection.execute(statement).mappings().one_or_none()
    return None if row is None else dict(row)
