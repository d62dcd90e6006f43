"""Handing in through the service: rate limits, the store's limits, and words for both; for pages and programs alike."""

from __future__ import annotations

from datetime import UTC

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from grader.checks.limited_reading import WAITED_FOR, problem_within
from grader.model.submission import Submission
from grader.report.safe_text import one_line
from grader.store.attempts.limits import Limit, Refusal
from grader.store.attempts.submissions import NewSubmission, Receipt
from grader.translation import counted, date_text, gettext
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
        at = refusal.lifted_at.astimezone(UTC)
        lifted = f"{date_text(at)}, {at:%H:%M} UTC"
    sentences = {
        Limit.NOT_ENROLLED: gettext("You take no part in this course, or only look on."),
        Limit.COURSE_CLOSED: gettext("The course is closed; nothing more is handed in."),
        Limit.COURSE_ARCHIVED: gettext(
            "The course is archived: everything can be read, and nothing more is handed in."
        ),
        Limit.NOT_OPEN: gettext("The task opens on {at}."),
        Limit.PAST_DUE: gettext(
            "The task was due and takes nothing more. Ask your instructor for an extension."
        ),
        Limit.EXAM_NOT_BEGUN: gettext(
            "This is an exam, and your own time begins when you say so: choose “Begin” on its page, "
            "or say `grader begin`."
        ),
        Limit.EXAM_OVER: gettext("Your time in this exam is over; nothing more is taken."),
        Limit.CONCURRENT: counted(
            "%(num)s of your attempts is not judged yet, and {allowed} may be at once. "
            "Wait for one to end, or cancel it.",
            "%(num)s of your attempts are not judged yet, and {allowed} may be at once. "
            "Wait for one to end, or cancel it.",
            refusal.used or 0,
        ),
        Limit.PER_DAY: gettext("You have had all {allowed} attempts of a day. The next one is free on {at}."),
        Limit.TOTAL: gettext("You have had all {allowed} attempts at this task."),
        # Only programs send one.
        Limit.KEY_REUSED: "This Idempotency-Key was used for another submission. Take a new one.",
    }
    return sentences[refusal.limit].format(at=lifted, allowed=refusal.allowed)
