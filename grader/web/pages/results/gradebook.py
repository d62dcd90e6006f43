"""The gradebook: people × tasks, sorted by links, every cell a way to the attempt that counts."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from fastapi import APIRouter
from starlette.responses import HTMLResponse

from grader.store.grading.pseudonyms import anonymous_tasks
from grader.web.staff.course_request import ReaderRequestDep
from grader.web.staff.gradebook_query import GradebookQueryDep
from grader.web.staff.rendered_gradebook import rendered_gradebook

router = APIRouter()


@router.get("/courses/{course_id}/gradebook", include_in_schema=False)
def show(request: ReaderRequestDep, wanted: GradebookQueryDep) -> HTMLResponse:
    """The gradebook of a course, a hundred learners at a time; anonymous tasks have one of their own."""
    hidden = anonymous_tasks(request.service.store, request.course.id)
    # Where nothing is graded by name there is but the one.
    num_named = len(request.tasks()) - len(hidden) if hidden else 0
    anonymous = bool(hidden) and (bool(wanted.anonymous) or not num_named)
    wanted = replace(wanted, anonymous=int(anonymous))
    service = request.service
    found = rendered_gradebook(
        service.until_next_event, service.templates, request.course.id, request.shown, wanted
    )
    return request.page(
        "gradebook.html.j2",
        {
            "shown": found.shown,
            "table": found.table,
            "wanted": wanted,
            "link": partial(wanted.link, request.at),
            "num_anonymous": len(hidden),
            "num_named": num_named,
        },
    )
