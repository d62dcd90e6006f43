"""Handing a script in, and checking one without handing it in: by a form, or by the page's small script."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse, Response

from grader.model.submission import Submission
from grader.store.attempts.limits import Limit
from grader.store.attempts.submissions import Receipt
from grader.web.learner.open_task import open_task
from grader.web.learner.source_findings import source_findings
from grader.web.learner.task_page import HandInForm, task_page
from grader.web.security.access import SignedIn, VisibleCourseTask, Visitor, too_many_requests
from grader.web.security.rate_limits import SCRIPT_CHECKS
from grader.web.service import ServiceDep, WebService
from grader.web.upload.intake import hand_in
from grader.web.upload.refusals import UploadRefusedError
from grader.web.upload.submission import read_upload

router = APIRouter()

_CHECK = "check"


@router.post("/courses/{course_id}/tasks/{course_task_id}/submit")
async def submit(
    request: Request, service: ServiceDep, visitor: SignedIn, found: VisibleCourseTask
) -> Response:
    """Hand in and go to the attempt; or (`action=check`) only check the text."""
    form = await request.form()
    text = form.get("text")
    pasted = text if isinstance(text, str) else ""
    try:
        submission = await read_upload(request)
    except UploadRefusedError as error:
        back = HandInForm(problem=str(error), pasted=pasted)
        return await run_in_threadpool(task_page, request, service, visitor, found, back, status_code=422)
    if form.get("action") == _CHECK:
        await _count(service, visitor)
        back = HandInForm(checked=submission, pasted=pasted)
        return await run_in_threadpool(task_page, request, service, visitor, found, back)
    try:
        answer = await hand_in(service, request, visitor, found.task.id, submission)
    except UploadRefusedError as error:
        back = HandInForm(checked=submission, problem=str(error), pasted=pasted)
        return await run_in_threadpool(task_page, request, service, visitor, found, back, status_code=422)
    if isinstance(answer, Receipt):
        return RedirectResponse(f"/attempts/{answer.attempt_id}", 303)
    forbidden = (Limit.NOT_ENROLLED, Limit.COURSE_CLOSED, Limit.COURSE_ARCHIVED)
    status = 403 if answer.limit in forbidden else 409
    back = HandInForm(checked=submission, refusal=answer, pasted=pasted)
    return await run_in_threadpool(task_page, request, service, visitor, found, back, status_code=status)


@router.get("/courses/{course_id}/tasks/{course_task_id}/submit")
async def submitted(found: VisibleCourseTask) -> Response:
    """What a browser asks for when a page that answered a form is opened again: the task, with its form."""
    return RedirectResponse(f"/courses/{found.course.id}/tasks/{found.task.id}", 303)


@router.post("/courses/{course_id}/tasks/{course_task_id}/check")
async def check(
    request: Request, service: ServiceDep, visitor: SignedIn, found: VisibleCourseTask
) -> Response:
    """What the text alone gives away, as a piece of the page: nothing is kept, no attempt is counted."""
    await _count(service, visitor)
    try:
        submission: Submission = await read_upload(request)
    except UploadRefusedError as error:
        return service.render(
            request, "source_findings_fragment.html.j2", visitor=visitor, found=None, problem=str(error)
        )
    task = await run_in_threadpool(open_task, service, visitor, found)
    read = await run_in_threadpool(source_findings, submission, task)
    return service.render(
        request, "source_findings_fragment.html.j2", visitor=visitor, found=read, problem=""
    )


async def _count(service: WebService, visitor: Visitor) -> None:
    """As often as a person changes a script, not as often as a program can send one."""
    refused = await service.rate_limiter.hit_async(SCRIPT_CHECKS, str(visitor.account.id))
    if refused is not None:
        raise too_many_requests(refused)
