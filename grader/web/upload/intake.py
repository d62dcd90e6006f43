"""Handing in through the service: rate limits, the store's limits, and words for both; for pages and programs alike."""

from __future__ import annotations

from datetime import UTC

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from grader.checks.limited_reading import WAITED_FOR, problem_within
from grader.model.submission import Submission
from grader.report.safe_text import one_line
from grader.store.limits import Limit, Refusal
from grader.store.submissions import NewSubmission, Receipt
from grader.web.security.access import Visitor, too_many_requests
from grader.web.service import WebService
from grader.web.upload.refusals import UploadRefusedError


async def hand_in(
    service: WebService,
    request: Request,
    visitor: Visitor,
    course_task_id: int,
    submission: Submission,
    *,
    key: str | None = None,
) -> Receipt | Refusal:
    """Hand a submission in for a task of a course, together with whatever others hand in just now.

    Raises:
        UploadRefusedError: nothing of it can run, or it cannot be read within limits.
        InfraError: the machine has too much else to do to read it.
        HTTPException: 429, too often within the last minute.
    """
    problem = await run_in_threadpool(problem_within, WAITED_FOR, submission)
    if problem is not None:
        raise UploadRefusedError(one_line(problem.refusal))
    for rate, whose in (
        (service.submit_limit, str(visitor.account.id)),
        (service.submit_limit_address, service.address(request)),
    ):
        refused = await service.rate_limiter.hit_async(rate, whose)
        if refused is not None:
            raise too_many_requests(refused)
    return await service.intake.ask(NewSubmission(visitor.account.id, course_task_id, submission, key))


def explain_refusal(refusal: Refusal, lifted: str = "") -> str:
    """What stands in the way, and what to do, in a sentence or two; `lifted`: how the time is written, "" as UTC."""
    if not lifted and refusal.lifted_at is not None:
        lifted = refusal.lifted_at.astimezone(UTC).strftime("%-d %B %Y, %H:%M UTC")
    waiting = f"{refusal.used} of your attempts {'is' if refusal.used == 1 else 'are'} not judged yet"
    sentences = {
        Limit.NOT_ENROLLED: "You take no part in this course, or only look on.",
        Limit.COURSE_CLOSED: "The course is closed; nothing more is handed in.",
        Limit.COURSE_ARCHIVED: "The course is archived: everything can be read, and nothing more is handed in.",
        Limit.NOT_OPEN: f"The task opens on {lifted}.",
        Limit.PAST_DUE: "The task was due and takes nothing more. Ask your instructor for an extension.",
        Limit.EXAM_NOT_BEGUN: "This is an exam, and your own time begins when you say so: choose “Begin” on its page, "
        "or say `grader begin`.",
        Limit.EXAM_OVER: "Your time in this exam is over; nothing more is taken.",
        Limit.CONCURRENT: f"{waiting}, and {refusal.allowed} may be at once. "
        "Wait for one to end, or cancel it.",
        Limit.PER_DAY: f"You have had all {refusal.allowed} attempts of a day. The next one is free on {lifted}.",
        Limit.TOTAL: f"You have had all {refusal.allowed} attempts at this task.",
        Limit.KEY_REUSED: "This Idempotency-Key was used for another submission. Take a new one.",
    }
    return sentences[refusal.limit]
