"""A course: its tasks in order, where one stands in each, and the certificate at its end."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import APIRouter, Request
from starlette.responses import Response

from grader.model.task import Task
from grader.store.attempts.limits import UNRELEASED
from grader.store.courses.announcements import announcements_of
from grader.store.courses.grading_rules import grading_rules
from grader.store.courses.learner_groups import group_of
from grader.store.courses.learners import ALL_LEARNERS
from grader.store.grading import certificates
from grader.store.grading.certificates import MissingTasks
from grader.store.grading.class_statistics import handed_in_counts
from grader.store.grading.progress import OwnTask, progress
from grader.translation import gettext
from grader.web import flash
from grader.web.learner.late_days_left import late_days_left
from grader.web.learner.own_total import own_total
from grader.web.lookups.catalog import about_course, cached_course, cached_task
from grader.web.security.access import SignedIn, VisibleCourse
from grader.web.service import ServiceDep
from grader.web.staff.course_overview import course_overview

router = APIRouter()
_MOST_ANNOUNCED = 3


@dataclass(frozen=True, slots=True)
class TaskRow:
    """A task in the list.

    Attributes:
        own: as this learner has it; known: its folder, None where that is not on this machine, or is an exam that they
            have not begun.
        first: titles of tasks that the course advises to do before and that are not accepted yet.
    """

    own: OwnTask
    known: Task | None
    first: tuple[str, ...]


@router.get("/courses/{course_id}")
def page(request: Request, service: ServiceDep, visitor: SignedIn, course: VisibleCourse) -> Response:
    """The task list."""
    teaches, reads = visitor.teaches(course.id), visitor.reads(course.id)
    learners = visitor.learners(course.id)
    owned = progress(service.store, course.id, visitor.account.id, with_drafts=reads)
    planned = cached_course(course)
    order = {} if planned is None else {item.task: item.after for item in planned.items}
    titles = {one.task.task: one.task.terms.title for one in owned if not one.accepted}
    rows = [
        TaskRow(
            one,
            None
            if one.exam is not None and one.exam.begun_at is None and not teaches
            else cached_task(service, one.task.task, one.task.terms.version),
            tuple(titles[name] for name in order.get(one.task.task, ()) if name in titles),
        )
        for one in owned
    ]
    required = [row for row in rows if row.own.task.terms.required and row.own.task.offered]
    certificate = certificates.certificate_of(service.store, course.id, visitor.account.id)
    told = announcements_of(service.store, course.id)
    kept = service.until_next_event
    return service.render(
        request,
        "course.html.j2",
        visitor=visitor,
        course=course,
        rows=rows,
        about=about_course(course),
        num_required=len(required),
        num_done=sum(row.own.accepted for row in required),
        hidden=any(row.own.hidden_until is not None for row in required),
        certificate=certificate,
        late_days_left=late_days_left(course, owned),
        unreleased=UNRELEASED,
        revocation_reason=""
        if certificate is None or certificate.revoked_at is None
        else certificates.revocation_reasons(service.store, course.id).get(visitor.account.id, ""),
        total=None if reads else own_total(owned),
        teaches=teaches,
        reads=reads,
        overview=kept.of(course_overview, course.id, learners) if reads else None,
        handed_in=kept.of(handed_in_counts, course.id, learners or ALL_LEARNERS) if reads else {},
        announcements=told[:_MOST_ANNOUNCED],
        num_announced=len(told),
        rules=grading_rules(service.store, course.id),
        group=None if reads else group_of(service.store, course.id, visitor.account.id),
    )


@router.post("/courses/{course_id}/certificate")
def certify(service: ServiceDep, visitor: SignedIn, course: VisibleCourse) -> Response:
    """One's own certificate, or what is missing."""
    # A task that hides its verdicts until it is due must not give them away here.
    if any(one.hidden_until is not None for one in progress(service.store, course.id, visitor.account.id)):
        text = gettext("How you did is told after the due date; the certificate waits for it, too.")
        return flash.redirect(f"/courses/{course.id}", service.secret, text, kind="note")
    issued = certificates.issue(service.store, course.id, visitor.account.id)
    if isinstance(issued, MissingTasks):
        named = ", ".join(issued.tasks)
        text = (
            gettext("Not yet accepted: {tasks}.").format(tasks=named)
            if named
            else gettext("This course asks for nothing, so there is nothing to certify.")
        )
        return flash.redirect(f"/courses/{course.id}", service.secret, text, kind="note")
    return flash.redirect(f"/certificates/{issued.public_id}", service.secret)
