"""Whom a route lets in: every route names one of these doors as a dependency.

What somebody may not see is not there for them: objects of others answer 404, exactly as those that do not exist. Only
areas that everybody knows of answer 403. Reads the store, changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

from fastapi import Depends, Path, Request
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from grader.store.attempts import AttemptFacts, attempt
from grader.store.courses import CourseFacts, SetTask, course, course_task
from grader.store.gradebook import feedback_opens_at
from grader.store.regrades import Batch, batch_facts
from grader.store.tables.api_token import Scope
from grader.web.site import Here, Site
from grader.web.visitor import (
    API,
    V1,
    ChangePasswordFirstError,
    Guest,
    SignInFirstError,
    Visitor,
    not_found,
    place_of,
    too_many,
    who,
)

__all__ = [
    "API",
    "V1",
    "Admin",
    "AnyStaff",
    "AttemptSeen",
    "AttemptTaught",
    "BatchTaught",
    "ChangePasswordFirstError",
    "CourseSeen",
    "CourseTask",
    "CourseTaskSeen",
    "Door",
    "Guest",
    "Id",
    "Open",
    "SignInFirstError",
    "SignedIn",
    "Staff",
    "Visitor",
    "hidden_until",
    "not_found",
    "too_many",
    "who",
]

Id = Annotated[int, Path(ge=1, le=2**63 - 1)]
"""A number in a path; what no database could hold is not found."""


class Door(StrEnum):
    """Whom a route lets in; tests walk all routes and hold each against what its door promises."""

    PUBLIC = "public"
    SIGNED_IN = "signed in"
    COURSE = "takes part in the course, teaches it, or admin"
    COURSE_STAFF = "teaches the course, or admin"
    ATTEMPT = "owns the attempt, teaches its course, or admin"
    ATTEMPT_STAFF = "teaches the attempt's course, or admin"
    BATCH_STAFF = "teaches the regrade's course, or admin"
    STAFF = "teaches any course, or admin"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class CourseTask:
    """A task of a course, with the course."""

    course: CourseFacts
    task: SetTask


def door(which: Door) -> Callable[[Any], Any]:
    """Mark a dependency as a door, so that routes can be asked for theirs."""

    def mark(function: Any) -> Any:
        function.door = which
        return function

    return mark


@door(Door.PUBLIC)
async def public() -> None:
    """Open to everybody: a route says so on purpose, with `dependencies=[Open]`."""


_BEFORE_A_PASSWORD = ("/password", "/sign-out")


@door(Door.SIGNED_IN)
async def signed_in(request: Request, visitor: Guest) -> Visitor:
    """Somebody who is known, with a password of their own."""
    if visitor is None:
        raise SignInFirstError(place_of(request))
    if visitor.scope is None and visitor.account.must_change and request.url.path not in _BEFORE_A_PASSWORD:
        raise ChangePasswordFirstError
    _within_scope(request, visitor, Scope.SUBMIT)
    return visitor


SignedIn = Annotated[Visitor, Depends(signed_in)]


@door(Door.COURSE)
async def course_seen(site: Here, visitor: SignedIn, course_id: Id) -> CourseFacts:
    """The course in the path, for whoever takes part in it."""
    found = await run_in_threadpool(course, site.store, course_id) if visitor.sees(course_id) else None
    if found is None:
        raise not_found()
    return found


@door(Door.COURSE)
async def course_task_seen(request: Request, site: Here, visitor: SignedIn, course_task_id: Id) -> CourseTask:
    """The task of a course in the path, for whoever takes part; before it opens its pages say only when it does."""
    found = await run_in_threadpool(_course_task, site, visitor, course_task_id)
    wanted = request.path_params.get("course_id")
    if found is None or (wanted is not None and str(wanted) != str(found.course.id)):
        raise not_found()
    return found


@door(Door.COURSE_STAFF)
async def staff(request: Request, site: Here, visitor: SignedIn, course_id: Id) -> Visitor:
    """Whoever teaches the course in the path."""
    if not visitor.teaches(course_id) or await run_in_threadpool(course, site.store, course_id) is None:
        raise not_found()
    _within_scope(request, visitor, Scope.MANAGE)
    return visitor


@door(Door.ATTEMPT)
async def attempt_seen(site: Here, visitor: SignedIn, attempt_id: Id) -> AttemptFacts:
    """The attempt in the path, for its owner and the staff of its course.

    A regrade that is not applied is nobody's but the staff's.
    """
    found = await run_in_threadpool(attempt, site.store, attempt_id)
    if found is not None and visitor.teaches(found.course_id):
        return found
    if found is None or found.person_id != visitor.account.id or not found.counts:
        raise not_found()
    return found


@door(Door.ATTEMPT_STAFF)
async def attempt_taught(request: Request, visitor: SignedIn, site: Here, attempt_id: Id) -> AttemptFacts:
    """The attempt in the path, for the staff of its course."""
    found = await run_in_threadpool(attempt, site.store, attempt_id)
    if found is None or not visitor.teaches(found.course_id):
        raise not_found()
    _within_scope(request, visitor, Scope.MANAGE)
    return found


@door(Door.BATCH_STAFF)
async def batch_taught(request: Request, visitor: SignedIn, site: Here, batch: str) -> Batch:
    """The regrade in the path, for the staff of its course."""
    found = await run_in_threadpool(batch_facts, site.store, batch)
    if found is None or not visitor.teaches(found.course_id):
        raise not_found()
    _within_scope(request, visitor, Scope.MANAGE)
    return found


@door(Door.STAFF)
async def any_staff(request: Request, visitor: SignedIn) -> Visitor:
    """Whoever teaches anything: for what all courses share, the queue."""
    if not visitor.is_staff:
        raise HTTPException(403, "This page is for instructors.")
    _within_scope(request, visitor, Scope.MANAGE)
    return visitor


@door(Door.ADMIN)
async def admin(request: Request, visitor: SignedIn) -> Visitor:
    """Administrators."""
    if not visitor.is_admin:
        raise HTTPException(403, "This page is for administrators.")
    _within_scope(request, visitor, Scope.MANAGE)
    return visitor


Open = Depends(public)
Staff = Annotated[Visitor, Depends(staff)]
AnyStaff = Annotated[Visitor, Depends(any_staff)]
Admin = Annotated[Visitor, Depends(admin)]
CourseSeen = Annotated[CourseFacts, Depends(course_seen)]
CourseTaskSeen = Annotated[CourseTask, Depends(course_task_seen)]
AttemptSeen = Annotated[AttemptFacts, Depends(attempt_seen)]
AttemptTaught = Annotated[AttemptFacts, Depends(attempt_taught)]
BatchTaught = Annotated[Batch, Depends(batch_taught)]


def hidden_until(site: Site, visitor: Visitor, seen: AttemptFacts) -> datetime | None:
    """Until when this visitor is not told how the attempt went, or None: they are."""
    if visitor.teaches(seen.course_id):
        return None
    return feedback_opens_at(site.store, seen.course_task_id, seen.person_id)


def _within_scope(request: Request, visitor: Visitor, to_change: Scope) -> None:
    """Reading takes a token that reads; changing something one that goes as far as the door says."""
    wanted = Scope.READ if request.method in ("GET", "HEAD") else to_change
    if not visitor.reaches(wanted):
        raise HTTPException(
            403, f"This token may only {visitor.scope}; for this it takes one that may {wanted}."
        )


def _course_task(site: Site, visitor: Visitor, course_task_id: int) -> CourseTask | None:
    task = course_task(site.store, course_task_id)
    if task is not None and task.withdrawn and not visitor.teaches(task.course_id):
        return None
    found = course(site.store, task.course_id) if task is not None and visitor.sees(task.course_id) else None
    return None if task is None or found is None else CourseTask(found, task)
