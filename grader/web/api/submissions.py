"""Handing in, and checking a script without handing it in.

A receipt waits for nothing: the place in the queue and what the source gives away come with it unless the service is
busy taking submissions; both can be asked for afterwards. It is given when the submission is on the disk, not before.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, TypeAlias

from fastapi import APIRouter, Header, Request
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from grader.checks.limited_reading import WAITED_FOR, is_long
from grader.model.submission import Submission
from grader.report.findings.readiness import steps_out
from grader.report.findings.reading import read_within_limits
from grader.store.attempts.attempts import attempt
from grader.store.attempts.limits import Limit, Refusal
from grader.store.attempts.submissions import Receipt
from grader.store.tables.attempt import AttemptState
from grader.web.documents.conversions import findings_out, place_out
from grader.web.documents.schemas import ERRORS, AcceptedOut, FindingsOut, ReadingOut, SubmissionIn
from grader.web.error_responses import error_response
from grader.web.learner.attempts_left import attempts_left_at
from grader.web.learner.open_task import open_task
from grader.web.learner.source_findings import findings_of, findings_of_attempt
from grader.web.security.access import (
    V1,
    Id,
    SignedIn,
    TaskInCourse,
    VisibleCourseTask,
    Visitor,
    too_many_requests,
)
from grader.web.security.rate_limits import SCRIPT_CHECKS
from grader.web.service import ServiceDep, WebService
from grader.web.upload.concurrent_uploads import SubmissionLoad
from grader.web.upload.intake import explain_refusal, hand_in
from grader.web.upload.submission import read_upload, submission_of

router = APIRouter(prefix=V1, tags=["submissions"], responses=ERRORS)
_STATUS = {
    Limit.NOT_ENROLLED: 404,
    Limit.CONCURRENT: 429,
    Limit.PER_DAY: 429,
    Limit.KEY_REUSED: 409,
}
_JSON = "application/json"
_FORMS = ("multipart/form-data", "application/x-www-form-urlencoded")
_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            _JSON: {"schema": SubmissionIn.model_json_schema(ref_template="#/components/schemas/{model}")},
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "properties": {
                        "files": {
                            "type": "array",
                            "items": {"type": "string", "format": "binary"},
                            "maxItems": 64,
                        },
                        "text": {"type": "string"},
                        "name": {"type": "string", "maxLength": 200},
                    },
                }
            },
        },
    }
}
_load = SubmissionLoad()
_ReceiptExtras: TypeAlias = tuple[dict[str, Any] | None, list[dict[str, Any]] | None, str | None]
_NOTHING: _ReceiptExtras = (None, None, None)


@router.post(
    "/course-tasks/{course_task_id}/submissions",
    status_code=202,
    response_model=AcceptedOut,
    openapi_extra=_BODY,
)
async def submit(
    request: Request,
    service: ServiceDep,
    visitor: SignedIn,
    course_task_id: Id,
    idempotency_key: Annotated[str | None, Header(min_length=1, max_length=80)] = None,
) -> Response:
    """Hand a submission in; the same `Idempotency-Key` again gives the same answer and makes nothing new."""
    with _load.counting():
        # Asked before and afterwards: those who are taken together leave together, and the last finds nobody there.
        was_low = _load.is_low()
        submission = await _read(request)
        taken = await hand_in(service, request, visitor, course_task_id, submission, key=idempotency_key)
        if isinstance(taken, Refusal):
            return _refusal_response(taken)
        # A long text was read once for this already, and its findings can be asked for.
        is_low = was_low and _load.is_low() and not is_long(submission)
        extras = await run_in_threadpool(_receipt_extras, service, taken, submission) if is_low else _NOTHING
    return _receipt(taken, *extras)


@router.post("/course-tasks/{course_task_id}/check", response_model=ReadingOut, openapi_extra=_BODY)
async def check(
    request: Request, service: ServiceDep, visitor: SignedIn, found: VisibleCourseTask
) -> Response:
    """What the source gives away for this task, and what of it is missing; nothing is kept and nothing is run."""
    await _count(service, visitor)
    submission = await _read(request)
    return JSONResponse(await run_in_threadpool(_reading, service, visitor, found, submission))


@router.post("/lint", response_model=FindingsOut, openapi_extra=_BODY)
async def look(request: Request, service: ServiceDep, visitor: SignedIn) -> Response:
    """What the source alone gives away; nothing is kept and nothing is run."""
    await _count(service, visitor)
    submission = await _read(request)
    return JSONResponse({"findings": await run_in_threadpool(_findings, submission)})


async def _count(service: WebService, visitor: Visitor) -> None:
    refused = await service.rate_limiter.hit_async(SCRIPT_CHECKS, str(visitor.account.id))
    if refused is not None:
        raise too_many_requests(refused)


async def _read(request: Request) -> Submission:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind in _FORMS:
        return await read_upload(request)
    if kind != _JSON:
        raise HTTPException(415, f"Send {_JSON} or {_FORMS[0]}.")
    try:
        document = SubmissionIn.model_validate_json(await request.body())
    except ValidationError as error:
        faults = error.errors(include_url=False, include_context=False)
        raise RequestValidationError(
            [{**fault, "loc": ("body", *fault["loc"])} for fault in faults]
        ) from None
    sent = [(file.path, file.text.encode()) for file in document.files]
    return await run_in_threadpool(submission_of, document.name, sent)


def _receipt_extras(service: WebService, taken: Receipt, submission: Submission) -> _ReceiptExtras:
    facts = attempt(service.store, taken.attempt_id)
    if facts is None:
        return _place(service, taken), findings_out(findings_of(submission)), None
    left = attempts_left_at(service.store, facts.course_id, facts.person_id, facts.course_task_id)
    return _place(service, taken), findings_out(findings_of_attempt(service, submission, facts)), left


def _receipt(
    taken: Receipt, place: dict[str, Any] | None, findings: list[dict[str, Any]] | None, left: str | None
) -> Response:
    url = f"{V1}/attempts/{taken.attempt_id}"
    answer = {
        "submission_id": taken.submission_id,
        "attempt_id": taken.attempt_id,
        "state": taken.state.value,
        "late_days": taken.late_days,
        "attempts_left": left,
        "repeated": taken.repeated,
        "place": place,
        "findings": findings,
        "url": url,
        "findings_url": f"{url}/findings",
    }
    return Response(json.dumps(answer), 202, {"Location": url}, media_type=_JSON)


def _refusal_response(refusal: Refusal) -> Response:
    status = _STATUS.get(refusal.limit, 403)
    lifted = refusal.lifted_at.isoformat() if refusal.lifted_at else None
    return error_response(status, explain_refusal(refusal), kind=refusal.limit.value, lifted_at=lifted)


def _place(service: WebService, taken: Receipt) -> dict[str, Any] | None:
    if taken.state is not AttemptState.QUEUED:
        return None
    place = place_out(service.queue_positions().get(taken.attempt_id))
    return None if place is None else place.model_dump()


def _reading(
    service: WebService, visitor: Visitor, found: TaskInCourse, submission: Submission
) -> dict[str, Any]:
    task = open_task(service, visitor, found)
    if task is None:
        return {"findings": _findings(submission), "steps": []}
    reading = read_within_limits(WAITED_FOR, task, submission, found.task.profile)
    return {"findings": findings_out(reading.findings), "steps": steps_out(reading.steps)}


def _findings(submission: Submission) -> list[dict[str, Any]]:
    return findings_out(findings_of(submission))
