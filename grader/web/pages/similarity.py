"""Submissions of a class that look alike, for staff: where to look, never what to think. Learners never see it."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import HTMLResponse, Response

from grader.errors import InfraError, UsageError
from grader.store.class_submissions import last_submissions
from grader.web.security.access import Id, not_found
from grader.web.similarity.comparison_process import MAX_SUBMISSIONS
from grader.web.staff.class_similarity import ClassComparison, compare_class, side_by_side
from grader.web.staff.course_request import CourseRequest, CourseRequestDep
from grader.web.staff.form import FormDep

router = APIRouter()


@router.get("/courses/{course_id}/similarity")
def show(request: CourseRequestDep, task: str = "") -> HTMLResponse:
    """Where a task is chosen; comparing takes seconds, so it is asked for."""
    return _page(request, task, None, "")


@router.post("/courses/{course_id}/similarity")
def compare(request: CourseRequestDep, form: FormDep) -> Response:
    """Compare the last submission of every learner."""
    chosen = form.ids("task")
    if len(chosen) != 1:
        raise not_found()
    task = request.task(chosen[0])
    try:
        compared = compare_class(request.service, task)
    except (UsageError, InfraError) as error:
        return _page(request, str(task.id), None, f"{error}.".replace("..", "."))
    return _page(request, str(task.id), compared, "")


@router.get("/courses/{course_id}/similarity/{course_task_id}/{first}/{second}")
def pair(request: CourseRequestDep, course_task_id: Id, first: Id, second: Id) -> HTMLResponse:
    """Two submissions side by side."""
    task = request.task(course_task_id)
    there = {
        one.attempt_id: one for one in last_submissions(request.service.store, task.id, limit=MAX_SUBMISSIONS)
    }
    if first not in there or second not in there or first == second:
        raise not_found()
    error = ""
    try:
        found, a, b = side_by_side(request.service, there[first], there[second], task)
    except (UsageError, InfraError) as failed:
        found, a, b, error = None, None, None, str(failed)
    return request.page(
        "similar_pair.html.j2",
        {"task": task, "pair": found, "sides": (a, b) if a and b else (), "error": error},
    )


def _page(request: CourseRequest, task: str, compared: ClassComparison | None, error: str) -> HTMLResponse:
    return request.page(
        "similarity.html.j2",
        {
            "tasks": [(str(one.id), one.terms.title) for one in request.tasks()],
            "chosen": task,
            "compared": compared,
            "error": error,
            "most": MAX_SUBMISSIONS,
        },
    )
