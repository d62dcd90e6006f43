"""The mail that tells a course's staff once a day what waits for them, queued in the hour that the site has set."""

from __future__ import annotations

from datetime import datetime

from grader.delivery.mail.letters import waiting_for_staff
from grader.store.courses.courses import courses
from grader.store.database import Store
from grader.store.delivery.notices import notify_summary


def queue_summaries(store: Store, now: datetime, *, hour: int) -> int:
    """Queue those whose hour it is in their course's zone, each once a day, where something waits; returns how many."""
    queued = 0
    for course in courses(store):
        local = now.astimezone(course.zone)
        if local.hour == hour and waiting_for_staff(store, course) is not None:
            with store.write() as connection:
                queued += notify_summary(connection, course.id, local.date().isoformat())
    return queued
