"""Handing a script in, and looking at one without handing it in: by a form, or by the page's small script."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse, Response

from grader.model.submission import Submission
from grader.store.limits import Limit
from grader.store.submissions import Accepted
from grader.web.doors.rates import LOOKS
from grader.web.found import look_at
from grader.web.site import Here, Site
from grader.web.task_view import task_page
from grader.web.upload.handing_in import explain, hand_in
from grader.web.upload.reading import read_upload
from grader.web.upload.refusals import UploadRefusedError
from grader.web.visit import CourseTaskSeen, SignedIn, Visitor, too_many

router = APIRouter()

_CHECK = "check"


@router.post("/courses/{course_id}/tasks/{course_task_id}/submit")
async def submit(request: Request, site: Here, visitor: SignedIn, found: CourseTaskSeen) -> Response:
    """Hand in and go to the attempt; or (`action=check`) only look at the text."""
    form = await request.form()
    text = form.get("text")
    pasted = text if isinstance(text, str) else ""
    try:
        submission = await read_upload(request)
    except UploadRefusedError as error:
        return await run_in_threadpool(
            task_page, request, site, visitor, found, problem=str(error), pasted=pasted, status_code=422
        )
    if form.get("action") == _CHECK:
        _count(site, visitor)
        return await run_in_threadpool(
            task_page, request, site, visitor, found, checked=submission, pasted=pasted
        )
    answer = await hand_in(site, request, visitor, found.task.id, submission)
    if isinstance(answer, Accepted):
        return RedirectResponse(f"/attempts/{answer.attempt_id}", 303)
    status = 403 if answer.limit in (Limit.NOT_ENROLLED, Limit.COURSE_CLOSED) else 409
    return await run_in_threadpool(
        task_page,
        request,
        site,
        visitor,
        found,
        checked=submission,
        problem=explain(answer),
        pasted=pasted,
        status_code=status,
    )


@router.post("/courses/{course_id}/tasks/{course_task_id}/check")
async def check(request: Request, site: Here, visitor: SignedIn, _found: CourseTaskSeen) -> Response:
    """What the text alone gives away, as a piece of the page: nothing is kept, no attempt is counted."""
    _count(site, visitor)
    try:
        submission: Submission = await read_upload(request)
    except UploadRefusedError as error:
        return site.render(request, "found_piece.html.j2", visitor=visitor, found=None, problem=str(error))
    seen = await run_in_threadpool(look_at, submission)
    return site.render(request, "found_piece.html.j2", visitor=visitor, found=seen, problem="")


def _count(site: Site, visitor: Visitor) -> None:
    """As often as a person changes a script, not as often as a program can send one."""
    refused = site.rates.take(LOOKS, str(visitor.account.id))
    if refused is not None:
        raise too_many(refused)
