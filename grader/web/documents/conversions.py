"""Attempts, events, findings and tasks as API documents; learners get nothing of staff, and no outcome too early."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from grader.model.finding import Finding
from grader.store.attempts import StoredAttempt
from grader.store.courses import AssignedTask
from grader.store.events import StoredEvent
from grader.store.queue import QueuePlace
from grader.store.tables.attempt import AttemptState
from grader.web.documents.schemas import AttemptOut, EventOut, PlaceOut, TaskOut
from grader.web.security.access import Visitor, hidden_until
from grader.web.service import WebService

# Of events, what only staff should read: why our machines failed, who acted, whose attempt had the same files.
_STAFF_ONLY = ("reason", "cached_from", "worker", "tries")
_OUTCOME = ("verdict", "points")


def attempt_out(service: WebService, visitor: Visitor, facts: StoredAttempt) -> AttemptOut:
    """An attempt as this visitor may see it."""
    teaches = visitor.teaches(facts.course_id)
    hidden = hidden_until(service, visitor, facts) if facts.verdict is not None else None
    visible = hidden is None
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
        verdict=facts.verdict if visible else None,
        points=facts.points if visible else None,
        max_points=facts.max_points if visible else None,
        hidden_until=hidden,
        login=facts.login if teaches else None,
        person=facts.person if teaches else None,
        worker=facts.worker if teaches else None,
        tries=facts.tries if teaches else None,
        failure=facts.failure if teaches else None,
    )


def events_out(
    service: WebService, visitor: Visitor, facts: StoredAttempt, happened: Iterable[StoredEvent]
) -> list[EventOut]:
    """Events of an attempt as this visitor may see them; none is left out, so that their numbers have no gaps."""
    if visitor.teaches(facts.course_id):
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
            "path": one.location.path if one.location else None,
            "line": one.location.line if one.location else None,
            "column": one.location.column if one.location else None,
        }
        for one in findings
    ]


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
        **fields,
    )
