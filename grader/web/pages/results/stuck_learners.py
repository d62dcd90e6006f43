"""Who is stuck where: learners who try a task again and again without being accepted."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import HTMLResponse

from grader.store.attempts.attempt_results import results_of
from grader.store.grading.class_statistics import stuck_learners
from grader.web.staff.course_request import ReaderRequestDep

router = APIRouter()
_LEAST, _MOST = 2, 20
_MOST_SHOWN = 200
"""More than anybody can go and help; those with the most tries stand first."""


@router.get("/courses/{course_id}/stuck")
def show(request: ReaderRequestDep, tries: str = "3") -> HTMLResponse:
    """Those with at least so many judged attempts and no accepted one, the most tries first."""
    given = int(tries) if tries.isascii() and tries.isdigit() and len(tries) < 4 else 3
    least = min(max(given, _LEAST), _MOST)
    kept = request.service.until_next_event
    found = kept.of(stuck_learners, request.course.id, request.shown, min_attempts=least)
    shown = found[:_MOST_SHOWN]
    return request.page(
        "stuck.html.j2",
        {
            "rows": shown,
            "results": results_of(request.service.store, [one.last_attempt_id for one in shown]),
            "num_more": max(0, len(found) - _MOST_SHOWN),
            "tries": least,
            "choices": (2, 3, 5, 8),
            "titles": {task.id: task.terms.title for task in request.tasks()},
        },
    )
