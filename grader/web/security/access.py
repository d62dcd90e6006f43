"""Whom a route lets in: every route names one of these rules as a dependency.

What somebody may not see is not there for them: objects of others answer 404, exactly as those that do not exist. Only
areas that everybody knows of answer 403. Reads the store, changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

from fastapi import Depends, Path, Request
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from grader.store.attempts.attempts import StoredAttempt, attempt
from grader.store.courses.courses import AssignedTask, CourseFacts, course, course_task
from grader.store.grading.regrades import RegradeBatch, batch_facts, is_of
from grader.store.tables.api_token import Scope
from grader.translation import gettext
from grader.web.security.attempt_feedback import is_own, is_shown
from grader.web.security.visitor import (
    API,
    V1,
    ChangePasswordFirstError,
    MaybeVisitor,
    SignInFirstError,
    Visitor,
    current_visitor,
    not_found,
    return_path,
    too_many_requests,
)
from grader.web.service import ServiceDep, WebService

__all__ = [
    "API",
    "V1",
    "AccessRule",
    "Admin",
    "AnyStaff",
    "ChangePasswordFirstError",
    "CourseGrader",
    "CourseInPath",
    "CourseReader",
    "CourseStaff",
    "Id",
    "MaybeVisitor",
    "Public",
    "SignInFirstError",
    "SignedIn",
    "StaffAttempt",
    "StaffBatch",
    "TaskInCourse",
    "VisibleAttempt",
    "VisibleCourse",
    "VisibleCourseTask",
    "Visitor",
    "Worker",
    "current_visitor",
    "not_found",
    "too_many_requests",
]

Id = Annotated[int, Path(ge=1, le=2**63 - 1)]
"""A number in a path; what no database could hold is not found."""


class AccessRule(StrEnum):
    """Whom a route lets in; tests walk all routes and hold each against what its rule promises."""

    PUBLIC = "public"
    SIGNED_IN = "signed in"
    COURSE = "takes part in the course, or admin"
    COURSE_STAFF = "teaches the course, or admin"
    COURSE_GRADER = "grades learners of the course, teaches it, or admin"
    COURSE_READER = "is shown how learners of the course do; to change something: grades them"
    ATTEMPT = "owns the attempt, or is shown how its learner does; to change something: grades them"
    ATTEMPT_STAFF = "is shown how the attempt's learner does; to change something: grades them"
    BATCH_STAFF = "is shown how all of the regrade's learners do; to change something: grades them"
    STAFF = "teaches any course, or admin"
    ADMIN = "admin"
    WORKER = "is a worker"


@dataclass(frozen=True, slots=True)
class TaskInCourse:
    """A task of a course, with the course."""

    course: CourseFacts
    task: AssignedTask


def access_rule(which: AccessRule) -> Callable[[Any], Any]:
    """Mark a dependency with its rule, so that routes can be asked for theirs."""

    def mark(function: Any) -> Any:
        function.access_rule = which
        return function

    return mark


@access_rule(AccessRule.PUBLIC)
async def public() -> None:
    """Open to everybody: a route says so on purpose, with `dependencies=[Open]`."""


_BEFORE_A_PASSWORD = ("/password", "/sign-out")


@access_rule(AccessRule.SIGNED_IN)
async def signed_in(request: Request, service: ServiceDep, visitor: MaybeVisitor) -> Visitor:
    """Somebody who is known, with a password of their own."""
    if visitor is None:
        raise SignInFirstError(return_path(request))
    needless = visitor.scope is not None or not service.sign_on.local_passwords
    if visitor.account.must_change and not needless and request.url.path not in _BEFORE_A_PASSWORD:
        raise ChangePasswordFirstError
    _within_scope(request, visitor, Scope.SUBMIT)
    return visitor


SignedIn = Annotated[Visitor, Depends(signed_in)]


async def course_in_path(service: ServiceDep, visitor: SignedIn, course_id: Id) -> CourseFacts:
    """The course in the path; asked for once in a request, whatever stands on it, and no door by itself."""
    found = await run_in_threadpool(course, service.store, course_id) if visitor.sees(course_id) else None
    if found is None:
        raise not_found()
    return found


@access_rule(AccessRule.COURSE)
async def visible_course(found: CourseInPath) -> CourseFacts:
    """The course in the path, for whoever takes part in it."""
    return found


@access_rule(AccessRule.COURSE)
async def visible_course_task(
    request: Request, service: ServiceDep, visitor: SignedIn, course_task_id: Id
) -> TaskInCourse:
    """The task of a course in the path, for whoever takes part; before it opens its pages say only when it does."""
    found = await run_in_threadpool(_course_task, service, visitor, course_task_id)
    wanted = request.path_params.get("course_id")
    if found is None or (wanted is not None and str(wanted) != str(found.course.id)):
        raise not_found()
    return found


@access_rule(AccessRule.COURSE_STAFF)
async def course_staff(request: Request, visitor: SignedIn, found: CourseInPath) -> Visitor:
    """Whoever teaches the course in the path."""
    if not visitor.teaches(found.id):
        raise not_found()
    _within_scope(request, visitor, Scope.MANAGE)
    return visitor


@access_rule(AccessRule.COURSE_GRADER)
async def course_grader(request: Request, visitor: SignedIn, found: CourseInPath) -> Visitor:
    """Whoever decides about attempts of learners of the course in the path: of `visitor.learners(course_id)`."""
    if not visitor.grades(found.id):
        raise not_found()
    _within_scope(request, visitor, Scope.MANAGE)
    return visitor


@access_rule(AccessRule.COURSE_READER)
async def course_reader(request: Request, visitor: SignedIn, found: CourseInPath) -> Visitor:
    """Whoever is shown how learners of the course in the path do: `visitor.learners(course_id)`, and no others."""
    if not (visitor.reads(found.id) if _only_reads(request) else visitor.grades(found.id)):
        raise not_found()
    _within_scope(request, visitor, Scope.MANAGE)
    return visitor


@access_rule(AccessRule.ATTEMPT)
async def visible_attempt(
    request: Request, service: ServiceDep, visitor: SignedIn, attempt_id: Id
) -> StoredAttempt:
    """The attempt in the path, for those for whom it counts and for those staff of its course who are shown it.

    A regrade that is not applied is nobody's but the staff's.
    """
    found = await run_in_threadpool(attempt, service.store, attempt_id)
    if found is not None and await run_in_threadpool(_shown_to_staff, request, service, visitor, found):
        return found
    if found is None or not found.counts:
        raise not_found()
    # Of a group's attempts each of those for whom it counts sees all.
    if not await run_in_threadpool(is_own, service, visitor, found):
        raise not_found()
    return found


@access_rule(AccessRule.ATTEMPT_STAFF)
async def staff_attempt(
    request: Request, visitor: SignedIn, service: ServiceDep, attempt_id: Id
) -> StoredAttempt:
    """The attempt in the path, for those staff of its course who are shown it."""
    found = await run_in_threadpool(attempt, service.store, attempt_id)
    if found is None or not await run_in_threadpool(_shown_to_staff, request, service, visitor, found):
        raise not_found()
    _within_scope(request, visitor, Scope.MANAGE)
    return found


@access_rule(AccessRule.BATCH_STAFF)
async def staff_batch(request: Request, visitor: SignedIn, service: ServiceDep, batch: str) -> RegradeBatch:
    """The regrade in the path, for those staff of its course who are shown all that it judges."""
    found = await run_in_threadpool(batch_facts, service.store, batch)
    if found is None:
        raise not_found()
    may = visitor.reads(found.course_id) if _only_reads(request) else visitor.grades(found.course_id)
    shown = visitor.learners(found.course_id)
    if not may or not (shown is None or await run_in_threadpool(is_of, service.store, batch, shown)):
        raise not_found()
    _within_scope(request, visitor, Scope.MANAGE)
    return found


@access_rule(AccessRule.STAFF)
async def any_staff(request: Request, visitor: SignedIn) -> Visitor:
    """Whoever teaches anything: for what all courses share, the queue."""
    if not visitor.is_staff:
        raise HTTPException(403, gettext("This page is for instructors."))
    _within_scope(request, visitor, Scope.MANAGE)
    return visitor


@access_rule(AccessRule.ADMIN)
async def admin(request: Request, visitor: SignedIn) -> Visitor:
    """Administrators."""
    if not visitor.is_admin:
        raise HTTPException(403, gettext("This page is for administrators."))
    _within_scope(request, visitor, Scope.MANAGE)
    return visitor


@access_rule(AccessRule.WORKER)
async def worker(visitor: MaybeVisitor) -> Visitor:
    """A worker: whoever shows a token that opens this and nothing else."""
    if visitor is None:
        raise HTTPException(401, "Show the token of a worker.", headers={"WWW-Authenticate": "Bearer"})
    if visitor.scope is not Scope.JUDGE:
        raise HTTPException(403, "This is for workers; `grader tokens issue` makes a token for one.")
    return visitor


Public = Depends(public)
CourseInPath = Annotated[CourseFacts, Depends(course_in_path)]
CourseStaff = Annotated[Visitor, Depends(course_staff)]
"""Instructors: settings, people, dates, what goes out of the course."""
CourseGrader = Annotated[Visitor, Depends(course_grader)]
"""Instructors and assistants; whoever asks is shown `visitor.learners(course_id)` and nobody else."""
CourseReader = Annotated[Visitor, Depends(course_reader)]
"""Instructors, assistants and observers; to change something, no observers."""
AnyStaff = Annotated[Visitor, Depends(any_staff)]
Admin = Annotated[Visitor, Depends(admin)]
Worker = Annotated[Visitor, Depends(worker)]
VisibleCourse = Annotated[CourseFacts, Depends(visible_course)]
VisibleCourseTask = Annotated[TaskInCourse, Depends(visible_course_task)]
VisibleAttempt = Annotated[StoredAttempt, Depends(visible_attempt)]
StaffAttempt = Annotated[StoredAttempt, Depends(staff_attempt)]
StaffBatch = Annotated[RegradeBatch, Depends(staff_batch)]


def _only_reads(request: Request) -> bool:
    return request.method in ("GET", "HEAD")


def _shown_to_staff(request: Request, service: WebService, visitor: Visitor, found: StoredAttempt) -> bool:
    """Whether the visitor is shown this attempt as staff, and may change it if the request does."""
    may = _only_reads(request) or visitor.grades(found.course_id)
    return may and is_shown(service, visitor, found)


def _within_scope(request: Request, visitor: Visitor, to_change: Scope) -> None:
    """Reading takes a token that reads; changing something one that goes as far as the rule says."""
    wanted = Scope.READ if _only_reads(request) else to_change
    if not visitor.reaches(wanted):
        raise HTTPException(
            403, f"This token may only {visitor.scope}; for this it takes one that may {wanted}."
        )


def _course_task(service: WebService, visitor: Visitor, course_task_id: int) -> TaskInCourse | None:
    task = course_task(service.store, course_task_id)
    if task is not None and not task.offered and not visitor.reads(task.course_id):
        return None
    found = (
        course(service.store, task.course_id) if task is not None and visitor.sees(task.course_id) else None
    )
    return None if task is None or found is None else TaskInCourse(found, task)
