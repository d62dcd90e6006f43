"""A course's task with all that it asks: there for learners once it opens, for the staff before.

Of an exam: once they have begun it, or how it went is released.
"""

from __future__ import annotations

from datetime import UTC, datetime

from grader.model.task import Task
from grader.store.courses.exams import exam_time
from grader.web.lookups.catalog import cached_task
from grader.web.security.access import TaskInCourse, Visitor
from grader.web.service import WebService


def open_task(service: WebService, visitor: Visitor, found: TaskInCourse) -> Task | None:
    """The task, if it is open to this visitor already and its folder is on this machine."""
    if not visitor.reads(found.course.id):
        opens = found.task.terms.opens_at
        if opens is not None and datetime.now(UTC) < opens:
            return None
        if found.task.terms.exam_minutes is not None and not found.task.released:
            time = exam_time(service.store, found.task.id, visitor.account.id)
            if time is None or time.begun_at is None:
                return None
    return cached_task(service, found.task.task, found.task.terms.version)
