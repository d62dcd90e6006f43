"""Courses, their tasks, and for staff their gradebook and attempts."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from grader.store.attempts.attempts import AttemptFilter, attempts
from grader.store.courses.courses import courses, tasks_of
from grader.store.courses.learners import ALL_LEARNERS
from grader.store.grading.gradebook import gradebook
from grader.web.documents.conversions import attempts_out, cell_out, task_out
from grader.web.documents.schemas import (
    ERRORS,
    AttemptOut,
    CourseOut,
    GradebookOut,
    LearnerOut,
    TaskOut,
)
from grader.web.security.access import V1, CourseReader, SignedIn, VisibleCourse
from grader.web.service import ServiceDep

router = APIRouter(prefix=V1, tags=["courses"], responses=ERRORS)
_MOST = 200


@router.get("/courses")
def own_courses(service: ServiceDep, visitor: SignedIn) -> list[CourseOut]:
    """The caller's courses; all of them for administrators."""
    roles = {one.course_id: one.role for one in visitor.courses}
    return [
        CourseOut(
            id=one.id,
            name=one.name,
            title=one.title,
            role=roles.get(one.id),
            closed=one.closed,
            draft=one.draft,
            archived=one.archived,
        )
        for one in courses(service.store)
        if visitor.sees(one.id)
    ]


@router.get("/courses/{course_id}/tasks")
def tasks(service: ServiceDep, visitor: SignedIn, course: VisibleCourse) -> list[TaskOut]:
    """The tasks of a course, in their order; drafts for its staff alone."""
    staff = visitor.reads(course.id)
    return [
        task_out(task)
        for task in tasks_of(service.store, course.id)
        if task.offered or (staff and not task.withdrawn)
    ]


@router.get("/courses/{course_id}/gradebook")
def whole_gradebook(service: ServiceDep, visitor: CourseReader, course_id: int) -> GradebookOut:
    """People × tasks, for the course's staff: of those learners whom they are shown."""
    book = gradebook(service.store, course_id, visitor.learners(course_id) or ALL_LEARNERS)
    return GradebookOut(
        tasks=[task_out(task) for task in book.tasks],
        learners=[
            LearnerOut(
                person_id=row.person_id,
                login=row.login,
                name=row.name,
                cells=[cell_out(task_id, cell) for task_id, cell in row.cells.items()],
            )
            for row in book.rows
        ],
    )


@router.get("/courses/{course_id}/attempts")
def attempts_of_course(
    service: ServiceDep,
    visitor: CourseReader,
    course_id: int,
    before: Annotated[int | None, Query(ge=1, le=2**63 - 1)] = None,
    limit: Annotated[int, Query(ge=1, le=_MOST)] = 50,
) -> list[AttemptOut]:
    """Attempts of a course, newest first, for its staff; the next page is `before` the last id of this one."""
    wanted = AttemptFilter(course_id=course_id, learners=visitor.learners(course_id))
    found = attempts(service.store, wanted, before=before, limit=limit)
    return attempts_out(service, visitor, found)
