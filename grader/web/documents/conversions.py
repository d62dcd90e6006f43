"""Attempts, events, findings and tasks as API documents; learners get nothing of staff, and no outcome too early."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from grader.model.attempt_result import AttemptResult
from grader.model.finding import Finding
from grader.report.changes.attempt_changes import FindingChange
from grader.report.changes.source_changes import FileChange
from grader.report.findings.cards import COSTS
from grader.report.words.banner import sentence
from grader.store.attempts.attempt_results import results_of
from grader.store.attempts.attempts import StoredAttempt
from grader.store.courses.courses import AssignedTask
from grader.store.events import StoredEvent
from grader.store.grading.gradebook import GradebookCell
from grader.store.grading.held_attempts import open_questions
from grader.store.grading.questions import LastWord
from grader.store.queue.queue import QueuePlace
from grader.store.tables.attempt import AttemptState
from grader.translation import ENGLISH, in_language
from grader.web.attempt_comparison import AttemptComparison
from grader.web.documents.change_schemas import ChangesOut, FileChangeOut, FindingChangeOut
from grader.web.documents.schemas import AttemptOut, CellOut, EventOut, PlaceOut, TaskOut
from grader.web.security.access import Visitor
from grader.web.security.attempt_feedback import hidden_until
from grader.web.service import WebService

# Of events, what only staff should read: why our machines failed, who acted, whose attempt had the same files.
_STAFF_ONLY = ("reason", "cached_from", "worker", "tries")
_OUTCOME = ("verdict", "points")


@in_language(ENGLISH)
def attempts_out(service: WebService, visitor: Visitor, found: Iterable[StoredAttempt]) -> list[AttemptOut]:
    """Attempts as this visitor may see them."""
    found = tuple(found)
    results = results_of(service.store, [one.id for one in found])
    held = [number for number, result in results.items() if result.held_since is not None]
    asked = open_questions(service.store, held)
    return [_attempt_out(service, visitor, one, results.get(one.id), asked.get(one.id)) for one in found]


def _attempt_out(
    service: WebService,
    visitor: Visitor,
    facts: StoredAttempt,
    result: AttemptResult | None,
    question: LastWord | None,
) -> AttemptOut:
    staff = visitor.reads(facts.course_id)
    hidden = hidden_until(service, visitor, facts) if facts.verdict is not None else None
    shown = result if hidden is None else None
    return AttemptOut(
        id=facts.id,
        submission=facts.submission,
        digest=facts.digest,
        course_id=facts.course_id,
        course_task_id=facts.course_task_id,
        task=facts.task,
        task_version=facts.task_version,
        profile=facts.profile,
        lane=facts.lane,
        state=facts.state,
        phase=facts.phase,
        place=place_out(service.queue_positions().get(facts.id))
        if facts.state is AttemptState.QUEUED
        else None,
        queued_at=facts.queued_at,
        claimed_at=facts.claimed_at,
        finished_at=facts.finished_at,
        cancel_requested=facts.cancel_requested_at is not None,
        verdict=shown.verdict if shown else None,
        points=shown.points if shown else None,
        max_points=shown.max_points if shown else None,
        judged_verdict=shown.judged_verdict if shown else None,
        judged_points=shown.judged_points if shown else None,
        late_days=shown.late_days if shown else None,
        late_loss=shown.late_loss if shown else None,
        free_days=shown.free_days if shown else None,
        comment_points=shown.comment_points if shown else None,
        overridden=shown.decided if shown else None,
        held_since=shown.held_since if shown else None,
        earlier_scale=shown.earlier_scale if shown else None,
        outcome=sentence(shown) if shown else None,
        hidden_until=hidden,
        question=question.text if question is not None and hidden is None else None,
        login=facts.login if staff else None,
        person=facts.person if staff else None,
        worker=facts.worker if staff else None,
        tries=facts.tries if staff else None,
        failure=facts.failure if staff else None,
    )


def cell_out(course_task_id: int, cell: GradebookCell) -> CellOut:
    """A cell of a gradebook."""
    result = cell.result
    return CellOut(
        course_task_id=course_task_id,
        num_attempts=cell.num_attempts,
        attempt_id=cell.attempt_id,
        points=result.points if result else 0.0,
        max_points=result.max_points if result else 0.0,
        verdict=result.verdict if result else None,
        late_days=result.late_days if result else 0,
        overridden=result.decided if result else False,
        outcome=sentence(result) if result else None,
    )


def events_out(
    service: WebService, visitor: Visitor, facts: StoredAttempt, happened: Iterable[StoredEvent]
) -> list[EventOut]:
    """Events of an attempt as this visitor may see them; none is left out, so that their numbers have no gaps."""
    if visitor.reads(facts.course_id):
        return [EventOut(seq=one.seq, kind=one.kind, at=one.at, data=one.data) for one in happened]
    kept_back = _STAFF_ONLY + (_OUTCOME if hidden_until(service, visitor, facts) is not None else ())
    return [
        EventOut(
            seq=one.seq,
            kind=one.kind,
            at=one.at,
            data={name: value for name, value in one.data.items() if name not in kept_back},
        )
        for one in happened
    ]


def place_out(place: QueuePlace | None) -> PlaceOut | None:
    """A place in the queue."""
    return None if place is None else PlaceOut(position=place.position, starts_in_s=place.starts_in_s)


def findings_out(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """Findings of the source, as `FindingOut` describes them."""
    return [
        {
            "code": one.code,
            "severity": one.severity.value,
            "message": one.message,
            "hint": one.hint,
            "costs": list(one.details.get(COSTS, ())),
            "path": one.location.path if one.location else None,
            "line": one.location.line if one.location else None,
            "column": one.location.column if one.location else None,
        }
        for one in findings
    ]


def changes_out(facts: StoredAttempt, compared: AttemptComparison | None) -> ChangesOut:
    """What changed since an earlier attempt."""
    changes = None if compared is None else compared.changes
    return ChangesOut(
        attempt_id=facts.id,
        since=compared.before.id if compared else None,
        outcome_before=sentence(changes.before) if changes else None,
        outcome=sentence(changes.now) if changes else None,
        went=[_finding_change_out(one) for one in changes.went] if changes else [],
        came=[_finding_change_out(one) for one in changes.came] if changes else [],
        num_stayed=changes.num_stayed if changes else 0,
        files=[_file_change_out(one) for one in changes.files] if changes else [],
        notes=list(changes.notes) if changes else [],
    )


def _file_change_out(one: FileChange) -> FileChangeOut:
    return FileChangeOut(
        kind=one.kind,
        path=one.path,
        old_path=one.old_path or None,
        num_added=one.num_added,
        num_removed=one.num_removed,
        num_left_out=one.num_left_out,
        diff=one.unified,
    )


def _finding_change_out(one: FindingChange) -> FindingChangeOut:
    return FindingChangeOut(
        code=one.code,
        title=one.title,
        severity=one.severity.value,
        path=one.place.path if one.place else None,
        line=one.place.line if one.place else None,
        cell=one.place.cell if one.place else "",
        doubt=one.doubt,
    )


def task_out(task: AssignedTask) -> TaskOut:
    """A task of a course."""
    terms = asdict(task.terms)
    fields = {name: terms[name] for name in TaskOut.model_fields if name in terms}
    return TaskOut(
        id=task.id,
        course_id=task.course_id,
        task=task.task,
        profile=task.profile,
        position=task.position,
        draft=task.draft,
        **fields,
    )
