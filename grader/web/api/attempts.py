"""Attempts: where they stand, what happened, their grade and report, cancelling and judging again."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, Response

from grader.report.audience import Audience
from grader.report.json_report import from_json, to_json
from grader.store.attempts.attempt_endings import CancelResult, cancel
from grader.store.attempts.attempt_results import results_of
from grader.store.attempts.attempts import AttemptFilter, attempts
from grader.store.attempts.submissions import source_of
from grader.store.events import events_of
from grader.store.grading.grades import grade_of
from grader.store.grading.regrades import queue_new_runs
from grader.store.tables.attempt import AttemptState
from grader.web import attempt_comparison
from grader.web.attempt_files import file_of
from grader.web.documents.change_schemas import ChangesOut
from grader.web.documents.conversions import attempts_out, changes_out, events_out, findings_out
from grader.web.documents.counted_grade import with_counts
from grader.web.documents.schemas import ERRORS, AttemptOut, CancelOut, EventOut, FindingsOut, RegradeOut
from grader.web.error_responses import error_response
from grader.web.learner.source_findings import findings_of_attempt
from grader.web.security.access import V1, SignedIn, StaffAttempt, VisibleAttempt, not_found
from grader.web.security.attempt_feedback import hidden_until
from grader.web.security.headers import REPORT_CSP
from grader.web.service import ServiceDep
from grader.web.stored_report import REPORT, STAFF_REPORT

router = APIRouter(prefix=V1, tags=["attempts"], responses=ERRORS)
_MOST = 200


@router.get("/attempts")
def own_attempts(
    service: ServiceDep,
    visitor: SignedIn,
    course_task_id: Annotated[int | None, Query(ge=1, le=2**63 - 1)] = None,
    before: Annotated[int | None, Query(ge=1, le=2**63 - 1)] = None,
    limit: Annotated[int, Query(ge=1, le=_MOST)] = 50,
) -> list[AttemptOut]:
    """The caller's own attempts, newest first; the next page is `before` the last id of this one."""
    wanted = AttemptFilter(person_id=visitor.account.id, course_task_id=course_task_id)
    found = attempts(service.store, wanted, before=before, limit=limit)
    return attempts_out(service, visitor, (one for one in found if one.counts))


@router.get("/attempts/{attempt_id}")
def one_attempt(service: ServiceDep, visitor: SignedIn, attempt: VisibleAttempt) -> AttemptOut:
    """Where an attempt stands."""
    return attempts_out(service, visitor, [attempt])[0]


@router.get("/attempts/{attempt_id}/findings")
def source_findings(service: ServiceDep, attempt: VisibleAttempt) -> FindingsOut:
    """What the attempt's source alone gives away, as grave as what it comes to in its task; nothing is run."""
    source = source_of(service.store, attempt.id)
    if source is None:
        raise not_found()
    return FindingsOut.model_validate(
        {"findings": findings_out(findings_of_attempt(service, source, attempt))}
    )


@router.get(
    "/attempts/{attempt_id}/grade",
    response_model=None,
    responses={200: {"content": {"application/json": {"schema": {"type": "object"}}}}},
)
def grade(service: ServiceDep, visitor: SignedIn, attempt: VisibleAttempt) -> Response:
    """The grade as it was judged, for learners without what is for staff; `counts` is what it counts as."""
    stored = grade_of(service.store, attempt.id)
    if stored is None:
        raise not_found()
    hidden = hidden_until(service, visitor, attempt)
    if hidden is not None:
        return _hidden(hidden)
    document = stored.document
    if not visitor.reads(attempt.course_id):
        # Written anew from what was judged: of two learners with the same files neither reads what is the other's.
        document = to_json(from_json(document), Audience.LEARNER)
    result = results_of(service.store, [attempt.id]).get(attempt.id)
    return Response(with_counts(document, result), media_type="application/json")


@router.get(
    "/attempts/{attempt_id}/report",
    response_model=None,
    responses={200: {"content": {"text/html": {"schema": {"type": "string"}}}}},
)
def report(service: ServiceDep, visitor: SignedIn, attempt: VisibleAttempt) -> Response:
    """The report, one HTML file that needs nothing else."""
    hidden = hidden_until(service, visitor, attempt)
    if hidden is not None:
        return _hidden(hidden)
    staff = visitor.reads(attempt.course_id)
    wanted = STAFF_REPORT if staff else REPORT
    found = file_of(service, attempt, wanted, staff=staff)
    if found is None:
        raise not_found()
    return HTMLResponse(found[0], headers={"content-security-policy": REPORT_CSP})


@router.get("/attempts/{attempt_id}/changes", response_model=ChangesOut)
def changes(
    service: ServiceDep,
    visitor: SignedIn,
    attempt: VisibleAttempt,
    since: Annotated[int | None, Query(ge=1, le=2**63 - 1)] = None,
) -> ChangesOut | Response:
    """What changed since the learner's attempt before, or since the one of that number: findings, outcome, text."""
    hidden = hidden_until(service, visitor, attempt)
    if hidden is not None:
        return _hidden(hidden)
    if attempt.state is not AttemptState.JUDGED:
        raise HTTPException(409, f"Attempt {attempt.id} is not judged, so there is nothing to compare.")
    if since is None:
        return changes_out(attempt, attempt_comparison.since_last(service, visitor, attempt))
    compared = attempt_comparison.since(service, visitor, attempt, since)
    if compared is None:
        # The same words for what is not there and for what is not theirs.
        raise HTTPException(
            409, f"Attempt {since} is no other judged attempt of the same learner at this task."
        )
    return changes_out(attempt, compared)


@router.get("/attempts/{attempt_id}/events")
def events(
    service: ServiceDep,
    visitor: SignedIn,
    attempt: VisibleAttempt,
    after: Annotated[int, Query(ge=0, le=2**63 - 1)] = 0,
) -> list[EventOut]:
    """What happened since event number `after`, 500 at most, in order."""
    return events_out(service, visitor, attempt, events_of(service.store, attempt.id, after=after))


@router.post("/attempts/{attempt_id}/cancel")
def cancel_attempt(service: ServiceDep, visitor: SignedIn, attempt: VisibleAttempt) -> CancelOut:
    """Cancel it: at once while it waits; a run is ended within seconds."""
    done: Any = cancel(service.store, attempt.id, actor_id=visitor.account.id)
    if done is CancelResult.UNKNOWN:
        raise not_found()
    return CancelOut(result=done.value)


@router.post("/attempts/{attempt_id}/regrade", status_code=202)
def regrade_attempt(service: ServiceDep, visitor: SignedIn, attempt: StaffAttempt) -> RegradeOut:
    """Judge it again at the task's version of today; nothing counts until that is applied."""
    return RegradeOut(batch=queue_new_runs(service.store, [attempt.id], actor_id=visitor.account.id))


def _hidden(until: datetime) -> Response:
    return error_response(
        403,
        f"How it went is told when the task is due, on {until.astimezone(UTC):%-d %B %Y, %H:%M} UTC.",
        kind="hidden_until_due",
        lifted_at=until.isoformat(),
    )
