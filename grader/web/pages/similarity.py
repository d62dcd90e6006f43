"""Submissions of a class that look alike, for staff: where to look, never what to think. Learners never see it."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import HTMLResponse, Response

from grader.errors import InfraError, UsageError
from grader.store.collection import last_handed_in
from grader.web.similar.asking import MAX_WORKS
from grader.web.staff.alike import Compared, compare_class, side_by_side
from grader.web.staff.sent import SentForm
from grader.web.staff.taught import Taught, TaughtHere
from grader.web.visit import Id, not_found

router = APIRouter()


@router.get("/courses/{course_id}/similarity")
def show(here: TaughtHere, task: str = "") -> HTMLResponse:
    """Where a task is chosen; comparing takes seconds, so it is asked for."""
    return _page(here, task, None, "")


@router.post("/courses/{course_id}/similarity")
def compare(here: TaughtHere, form: SentForm) -> Response:
    """Compare the last submission of every learner."""
    chosen = form.ids("task")
    if len(chosen) != 1:
        raise not_found()
    task = here.task(chosen[0])
    try:
        compared = compare_class(here.site.store, task)
    except (UsageError, InfraError) as error:
        return _page(here, str(task.id), None, f"{error}.".replace("..", "."))
    return _page(here, str(task.id), compared, "")


@router.get("/courses/{course_id}/similarity/{course_task_id}/{first}/{second}")
def pair(here: TaughtHere, course_task_id: Id, first: Id, second: Id) -> HTMLResponse:
    """Two submissions side by side."""
    task = here.task(course_task_id)
    there = {one.attempt_id: one for one in last_handed_in(here.site.store, task.id, limit=MAX_WORKS)}
    if first not in there or second not in there or first == second:
        raise not_found()
    error = ""
    try:
        found, a, b = side_by_side(there[first], there[second], task)
    except (UsageError, InfraError) as failed:
        found, a, b, error = None, None, None, str(failed)
    return here.page(
        "alike.html.j2", {"task": task, "pair": found, "sides": (a, b) if a and b else (), "error": error}
    )


def _page(here: Taught, task: str, compared: Compared | None, error: str) -> HTMLResponse:
    return here.page(
        "similarity.html.j2",
        {
            "tasks": [(str(one.id), one.terms.title) for one in here.tasks()],
            "chosen": task,
            "compared": compared,
            "error": error,
            "most": MAX_WORKS,
        },
    )
