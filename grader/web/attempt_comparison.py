"""An attempt beside an earlier one of the same learner at the same task, as far as the visitor may know of both."""

from __future__ import annotations

from dataclasses import dataclass

from grader.model.attempt_result import AttemptResult
from grader.report.audience import Audience, for_audience
from grader.report.changes.attempt_changes import AttemptChanges, JudgedSubmission, attempt_changes
from grader.report.html.explanation_pages import rule_titles
from grader.report.json_report import from_json
from grader.store.attempts.attempt_results import results_of
from grader.store.attempts.attempts import StoredAttempt, attempt, attempt_before
from grader.store.attempts.submissions import source_of
from grader.store.grading.credits import people_of
from grader.store.grading.grades import grade_of
from grader.web.security.access import Visitor
from grader.web.security.attempt_feedback import hidden_until
from grader.web.service import WebService


@dataclass(frozen=True, slots=True)
class AttemptComparison:
    """What changed between `before` and the attempt that is looked at."""

    before: StoredAttempt
    changes: AttemptChanges


def since_last(service: WebService, visitor: Visitor, facts: StoredAttempt) -> AttemptComparison | None:
    """Against the attempt that was handed in last before this one; None where there is none, or none to be told of."""
    before = attempt_before(service.store, facts)
    return None if before is None else _compared(service, visitor, before, facts)


def since(
    service: WebService, visitor: Visitor, facts: StoredAttempt, before_id: int
) -> AttemptComparison | None:
    """Against the attempt of that number; None: it is no other one of this learner at this task, or is not told of."""
    before = attempt(service.store, before_id)
    if before is None or before.id == facts.id:
        return None
    if before.course_task_id != facts.course_task_id or facts.person_id not in people_of(
        service.store, before.id
    ):
        return None
    # A regrade that is not applied is nobody's but the staff's.
    if not before.counts and not visitor.reads(before.course_id):
        return None
    return _compared(service, visitor, before, facts)


def _compared(
    service: WebService, visitor: Visitor, before: StoredAttempt, now: StoredAttempt
) -> AttemptComparison | None:
    if any(hidden_until(service, visitor, one) is not None for one in (before, now)):
        return None
    audience = Audience.STAFF if visitor.reads(now.course_id) else Audience.LEARNER
    results = results_of(service.store, [before.id, now.id])
    old, new = (_judged(service, one, results.get(one.id), audience) for one in (before, now))
    if old is None or new is None:
        return None
    return AttemptComparison(before, attempt_changes(old, new, rule_titles()))


def _judged(
    service: WebService, facts: StoredAttempt, result: AttemptResult | None, audience: Audience
) -> JudgedSubmission | None:
    """None where there is no grade, or none that can be read."""
    stored, source = grade_of(service.store, facts.id), source_of(service.store, facts.id)
    if result is None or stored is None or source is None:
        return None
    try:
        grade = from_json(stored.document)
    except ValueError:
        return None
    return JudgedSubmission(source, for_audience(grade, audience), result)
