"""The first page: one's own courses and how far one has come in each."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from fastapi import APIRouter, Request
from starlette.responses import Response

from grader.store.grading.progress import OwnTask, progress
from grader.store.people.own_courses import OwnCourse
from grader.store.tables.person import Role
from grader.web.security.access import SignedIn, Visitor
from grader.web.service import ServiceDep, WebService

router = APIRouter()


@dataclass(frozen=True, slots=True)
class CourseSummary:
    """A course on the first page.

    Attributes:
        num_tasks, num_accepted: of all tasks; next_task, next_due: what is due next and not done.
        staff: they are more than a learner there.
    """

    course: OwnCourse
    num_tasks: int
    num_accepted: int
    next_task: str
    next_due: datetime | None
    staff: bool


@router.get("/")
def home(request: Request, service: ServiceDep, visitor: SignedIn) -> Response:
    """One's courses; those that are archived by their titles alone."""
    return service.render(
        request,
        "home.html.j2",
        visitor=visitor,
        summaries=[_summary(service, visitor, one) for one in visitor.courses if not one.archived],
        archived=[one for one in visitor.courses if one.archived],
    )


def _due(task: OwnTask) -> datetime:
    assert task.due_at is not None
    return task.due_at


def _summary(service: WebService, visitor: Visitor, course: OwnCourse) -> CourseSummary:
    tasks = progress(service.store, course.course_id, visitor.account.id)
    open_ones = [one for one in tasks if not one.accepted]
    due = sorted(
        (one for one in open_ones if one.due_at is not None and not one.late_days),
        key=_due,
    )
    first = due[0] if due else None
    return CourseSummary(
        course,
        len(tasks),
        sum(one.accepted for one in tasks),
        first.task.terms.title if first else "",
        first.due_at if first else None,
        course.role is not Role.LEARNER,
    )
