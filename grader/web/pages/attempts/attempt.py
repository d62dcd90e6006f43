"""An attempt: live while it waits and runs, its report afterwards, under one address."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from grader.errors import InfraError, UsageError
from grader.report.words.wording import ordinal
from grader.store.attempts.attempt_endings import CancelResult, cancel
from grader.store.attempts.attempt_results import results_of
from grader.store.attempts.attempts import AttemptFilter, StoredAttempt, attempts
from grader.store.attempts.limits import UNRELEASED, counts_against_limits
from grader.store.attempts.retention import deleted_of
from grader.store.attempts.submissions import source_of
from grader.store.courses.courses import course, tasks_of
from grader.store.events import events_of
from grader.store.grading import reviews
from grader.store.grading.credits import people_of
from grader.store.grading.held_attempts import held_since, open_questions
from grader.store.grading.questions import LastWord
from grader.store.grading.regrade_requests import (
    RegradeRequest,
    ask_for_regrade,
    asked_until,
    requests_about,
)
from grader.store.people.people import names_of
from grader.store.queue.queue import places, queue_state
from grader.store.tables.attempt import AttemptState, Lane
from grader.translation import N_, gettext
from grader.web import flash, stored_report
from grader.web.attempt_comparison import since_last
from grader.web.attempt_files import file_of, offered_files
from grader.web.confirmation import Question, ask_first, is_confirmed
from grader.web.learner.attempts_left import attempts_left_at
from grader.web.learner.source_findings import source_findings
from grader.web.live.attempt_progress import attempt_progress
from grader.web.lookups.catalog import cached_task
from grader.web.security.access import SignedIn, VisibleAttempt, Visitor, not_found
from grader.web.security.attempt_feedback import hidden_until, is_own, is_shown
from grader.web.service import ServiceDep, WebService
from grader.web.staff.form import FormDep, SubmittedForm
from grader.web.staff.store_problems import problem_text
from grader.web.stored_report import StoredReport

router = APIRouter()

_EVENTS = 5000
_REGRADES = 100
_REPORT_CSP = (
    "default-src 'none'; style-src 'self' 'unsafe-inline'; script-src 'self'; img-src 'self' data:; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""A report's bars and plots carry their sizes and colours inline; scripts stay our own files."""
_CANCELLED = {
    CancelResult.CANCELLED: (N_("The attempt is cancelled. It waited, so it does not count."), "done"),
    CancelResult.REQUESTED: (N_("The run is being ended."), "note"),
    CancelResult.TOO_LATE: (N_("It had come to its end already."), "note"),
    CancelResult.UNKNOWN: (N_("There is nothing to cancel."), "problem"),
}


@router.get("/attempts/{attempt_id}")
def page(request: Request, service: ServiceDep, visitor: SignedIn, facts: VisibleAttempt) -> Response:
    """What there is to see of the attempt just now."""
    return _page(request, service, visitor, facts, SubmittedForm({}, {}))


def _page(
    request: Request,
    service: WebService,
    visitor: Visitor,
    facts: StoredAttempt,
    form: SubmittedForm,
    status_code: int = 200,
) -> Response:
    shown_as_staff = is_shown(service, visitor, facts)
    task = next(
        (one for one in tasks_of(service.store, facts.course_id) if one.id == facts.course_task_id), None
    )
    until = hidden_until(service, visitor, facts)
    context: dict[str, Any] = {
        "attempt": facts,
        "course": course(service.store, facts.course_id),
        "title": task.terms.title if task else facts.task,
        # Of a task that was withdrawn there is no page any more.
        "task_url": f"/courses/{facts.course_id}/tasks/{facts.course_task_id}"
        if task is not None and not task.withdrawn
        else "",
        "here": f"/attempts/{facts.id}",
        "reads": shown_as_staff,
        "grades": shown_as_staff and visitor.grades(facts.course_id),
        "own": is_own(service, visitor, facts),
        "group": _group(service, facts),
        "hidden_until": until,
        "unreleased": UNRELEASED,
        # Since when it waits for an instructor to decide; None: it does not, or how it went is not told yet.
        "held_since": None if until is not None else held_since(service.store, [facts.id]).get(facts.id),
        "result": None if until is not None else results_of(service.store, [facts.id]).get(facts.id),
        "later": _later(service, facts),
        "form": form,
    }
    if facts.state in (AttemptState.QUEUED, AttemptState.RUNNING):
        return _live(request, service, visitor, facts, context)
    return _over(request, service, visitor, facts, context, status_code)


@router.post("/attempts/{attempt_id}/answer")
def answer(
    request: Request, service: ServiceDep, visitor: SignedIn, facts: VisibleAttempt, form: FormDep
) -> Response:
    """The learner's answer to what an instructor asked before deciding; then it is the instructors' turn again."""
    if _question_to(service, visitor, facts) is None:
        nothing = gettext("No question waits for your answer.")
        return flash.redirect(f"/attempts/{facts.id}", service.secret, nothing, kind="note")
    text = form.needed("answer", gettext("An answer"))
    if form.good:
        try:
            reviews.answer(service.store, facts.id, text, author_id=visitor.account.id)
        except UsageError as error:
            # Decided, or answered in another window, in this very moment.
            form.errors["answer"] = problem_text(error)
        else:
            done = gettext("Your answer is with the instructors; they decide next.")
            return flash.redirect(f"/attempts/{facts.id}", service.secret, done)
    return _page(request, service, visitor, facts, form, 422)


@router.post("/attempts/{attempt_id}/regrade-requests")
def request_regrade(
    request: Request, service: ServiceDep, visitor: SignedIn, facts: VisibleAttempt, form: FormDep
) -> Response:
    """Ask that somebody looks at the grade again: whoever the attempt counts for may."""
    if not is_own(service, visitor, facts) or hidden_until(service, visitor, facts) is not None:
        raise not_found()
    text = form.needed("request", gettext("What should be looked at"))
    if form.good:
        try:
            ask_for_regrade(service.store, facts.id, text, person_id=visitor.account.id)
        except UsageError as error:
            form.errors["request"] = gettext("Nothing was asked: {problem}.").format(
                problem=problem_text(error)
            )
        else:
            done = gettext("Your request is with the instructors; you read their reply here.")
            return flash.redirect(f"/attempts/{facts.id}", service.secret, done)
    return _page(request, service, visitor, facts, form, 422)


def _asked_until(
    service: WebService, facts: StoredAttempt, requests: Sequence[RegradeRequest]
) -> datetime | None:
    """Until when another request is taken; None: none is, or one is open."""
    if any(one.decision is None for one in requests):
        return None
    until = asked_until(service.store, facts.id)
    return until if until is not None and datetime.now(UTC) <= until else None


def _group(service: WebService, facts: StoredAttempt) -> list[str]:
    """Names of those for whom an attempt counts, where they are several and may be told."""
    people = people_of(service.store, facts.id)
    if facts.anonymous or len(people) < 2:
        return []
    return sorted(names_of(service.store, people).values())


def _question_to(service: WebService, visitor: Visitor, facts: StoredAttempt) -> LastWord | None:
    """What the visitor was asked about an attempt of theirs, and has not answered."""
    if not is_own(service, visitor, facts) or hidden_until(service, visitor, facts) is not None:
        return None
    return open_questions(service.store, [facts.id]).get(facts.id)


@router.post("/attempts/{attempt_id}/cancel")
def end(
    request: Request, service: ServiceDep, visitor: SignedIn, facts: VisibleAttempt, form: FormDep
) -> Response:
    """End it: at once where it waits, within seconds where it runs; what that costs is asked first."""
    if facts.state is AttemptState.RUNNING and _costs(facts) and not is_confirmed(form):
        return ask_first(service, request, visitor, _question(service, visitor, facts))
    text, kind = _CANCELLED[cancel(service.store, facts.id, actor_id=visitor.account.id)]
    return flash.redirect(f"/attempts/{facts.id}", service.secret, gettext(text), kind=kind)


def _costs(facts: StoredAttempt) -> bool:
    """Whether this attempt, cancelled while it runs, counts as one that was had."""
    had = counts_against_limits(AttemptState.CANCELLED, facts.claimed_at, facts.cached_from)
    return had and facts.lane is Lane.INTERACTIVE and facts.cancel_requested_at is None


def _question(service: WebService, visitor: Visitor, facts: StoredAttempt) -> Question:
    left = attempts_left_at(service.store, facts.course_id, facts.person_id, facts.course_task_id)
    if is_own(service, visitor, facts):
        title = gettext("Cancel your {ordinal} attempt?").format(ordinal=ordinal(facts.number))
        text = gettext(
            "It is running. Cancelled now it counts as one of your attempts all the same, and has no grade."
        )
    else:
        title = gettext("Cancel attempt {number}?").format(number=facts.id)
        text = gettext(
            "It is running. Cancelled now it counts as one of {person}’s attempts all the same, and has no grade."
        ).format(person=facts.person)
    if left:
        text += " " + gettext("Afterwards it is {left}.").format(left=left)
    return Question(title, text, gettext("Cancel it"), f"/attempts/{facts.id}", no=gettext("Let it run"))


def _live(
    request: Request, service: WebService, visitor: Visitor, facts: StoredAttempt, context: dict[str, Any]
) -> Response:
    source = source_of(service.store, facts.id)
    waits = facts.state is AttemptState.QUEUED
    queue = queue_state(service.store) if waits else None
    return service.render(
        request,
        "attempt_live.html.j2",
        visitor=visitor,
        progress=attempt_progress(events_of(service.store, facts.id, limit=_EVENTS)),
        place=places(service.store).get(facts.id) if waits else None,
        paused=queue.holding(facts.lane, facts.need) if queue else (),
        nobody_works=queue is not None and not queue.takers(facts.need),
        found=None
        if source is None
        else source_findings(source, cached_task(service, facts.task, facts.task_version), facts.profile),
        problem="",
        **context,
    )


def _over(
    request: Request,
    service: WebService,
    visitor: Visitor,
    facts: StoredAttempt,
    context: dict[str, Any],
    status_code: int,
) -> Response:
    hidden, staff = context["hidden_until"] is not None, visitor.reads(facts.course_id)
    judged = facts.state is AttemptState.JUDGED
    report = None if hidden or not judged else _report(service, facts, staff=staff)
    overrides = () if hidden else reviews.overrides_of(service.store, facts.id)
    requests = () if hidden else requests_about(service.store, facts.id)
    return service.render(
        request,
        "attempt.html.j2",
        visitor=visitor,
        status_code=status_code,
        headers={"Content-Security-Policy": _REPORT_CSP} if report else None,
        report=report,
        question=_question_to(service, visitor, facts) if context["held_since"] else None,
        in_force=next((one for one in overrides if one.withdrawn_at is None), None),
        overrides=overrides,
        requests=requests,
        ask_until=None if hidden else _asked_until(service, facts, requests),
        comments=() if hidden else reviews.comments_of(service.store, facts.id),
        # The position of a file is what lines of the report's listing are named after.
        file_numbers=_file_numbers(service, facts),
        compared=since_last(service, visitor, facts) if judged and not hidden else None,
        files=() if hidden else offered_files(service, facts, staff=staff),
        source=source_of(service.store, facts.id),
        deleted=deleted_of(service.store, facts.id),
        **context,
    )


def _report(service: WebService, facts: StoredAttempt, *, staff: bool) -> StoredReport | None:
    names = (stored_report.STAFF_REPORT, stored_report.REPORT) if staff else (stored_report.REPORT,)
    try:
        found = next(filter(None, (file_of(service, facts, name, staff=staff) for name in names)), None)
    except InfraError:
        # The page says that the report cannot be read; verdict and points are in the database.
        return None
    return None if found is None else stored_report.read(found[0])


def _later(service: WebService, facts: StoredAttempt) -> StoredAttempt | None:
    """The judgement that holds instead of this one: the last regrade that was put in force, if it is another."""
    wanted = AttemptFilter(course_task_id=facts.course_task_id, person_id=facts.person_id, lane=Lane.REGRADE)
    root = facts.regrade_of or facts.id
    for one in attempts(service.store, wanted, limit=_REGRADES):
        if one.regrade_of == root and one.counts and one.state is AttemptState.JUDGED:
            return one if one.id > facts.id else None
    return None


def _file_numbers(service: WebService, facts: StoredAttempt) -> dict[str, int]:
    source = source_of(service.store, facts.id)
    return {} if source is None else {file.path: number for number, file in enumerate(source.files)}
