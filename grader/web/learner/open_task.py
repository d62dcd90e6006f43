"""A course's task with all that it asks: there for learners once it opens, for the staff before."""

from __future__ import annotations

from datetime import UTC, datetime

from grader.model.task import Task
from grader.web.lookups.catalog import cached_task
from grader.web.security.access import TaskInCourse, Visitor
from grader.web.service import WebService


def open_task(service: WebService, visitor: Visitor, found: TaskInCourse) -> Task | None:
    """The task, if it is open to this visitor already and its folder is on this machine."""
    opens = found.task.terms.opens_at
    closed = opens is not None and datetime.now(UTC) < opens and not visitor.reads(found.course.id)
    return None if closed else cached_task(service, found.task.task, found.task.terms.version)
