"""The review queue of a course: what is held, what learners ask about grades and answer to comments; oldest first."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import HTMLResponse

from grader.store.grading.comment_replies import unanswered_replies
from grader.store.grading.held_attempts import held_attempts
from grader.store.grading.regrade_requests import open_requests
from grader.web.staff.course_request import ReaderRequestDep
from grader.web.staff.held_reasons import reasons_of

router = APIRouter()
_MOST_SHOWN = 100


@router.get("/courses/{course_id}/review")
def show(request: ReaderRequestDep) -> HTMLResponse:
    """Who waits, for which task, since when and why."""
    waiting = held_attempts(request.service.store, request.course.id, request.shown)
    return request.page(
        "review_queue.html.j2",
        {
            "waiting": [(one, reasons_of(one.document)) for one in waiting[:_MOST_SHOWN]],
            "num_more": max(0, len(waiting) - _MOST_SHOWN),
            "requests": open_requests(request.service.store, request.course.id, request.shown),
            "replies": unanswered_replies(request.service.store, request.course.id, request.shown),
        },
    )
