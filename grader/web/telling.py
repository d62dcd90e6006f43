"""What visitors are told of attempts, as documents: to learners without what is for staff, or not before it is due."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from grader.model.finding import Finding
from grader.store.attempts import AttemptFacts
from grader.store.courses import SetTask
from grader.store.events import Happened
from grader.store.queue import Place
from grader.store.tables.attempt import AttemptState
from grader.web.documents import AttemptOut, EventOut, PlaceOut, TaskOut
from grader.web.site import Site
from grader.web.visit import Visitor, hidden_until

# Of events, what only staff should read: why our machines failed, who acted, whose attempt had the same files.
_STAFF_ONLY = ("reason", "cached_from", "worker", "tries")
_OUTCOME = ("verdict", "points")


def attempt_out(site: Site, visitor: Visitor, seen: AttemptFacts) -> AttemptOut:
    """An attempt as this visitor may see it."""
    teaches = visitor.teaches(seen.course_id)
    hidden = hidden_until(site, visitor, seen) if seen.verdict is not None else None
    told = hidden is None
    return AttemptOut(
        id=seen.id,
        submission=seen.submission,
        digest=seen.digest,
        course_id=seen.course_id,
        course_task_id=seen.course_task_id,
        task=seen.task,
        task_version=seen.task_version,
        profile=seen.profile,
        lane=seen.lane,
        state=seen.state,
        phase=seen.phase,
        place=place_out(site.places().get(seen.id)) if seen.state is AttemptState.QUEUED else None,
        queued_at=seen.queued_at,
        claimed_at=seen.claimed_at,
        finished_at=seen.finished_at,
        cancel_requested=seen.cancel_requested_at is not None,
        verdict=seen.verdict if told else None,
        points=seen.points if told else None,
        max_points=seen.max_points if told else None,
        hidden_until=hidden,
        login=seen.login if teaches else None,
        person=seen.person if teaches else None,
        worker=seen.worker if teaches else None,
        tries=seen.tries if teaches else None,
        failure=seen.failure if teaches else None,
    )


def events_out(
    site: Site, visitor: Visitor, seen: AttemptFacts, happened: Iterable[Happened]
) -> list[EventOut]:
    """Events of an attempt as this visitor may see them; none is left out, so that their numbers have no gaps."""
    if visitor.teaches(seen.course_id):
        return [EventOut(seq=one.seq, kind=one.kind, at=one.at, data=one.data) for one in happened]
    kept_back = _STAFF_ONLY + (_OUTCOME if hidden_until(site, visitor, seen) is not None else ())
    return [
        EventOut(
            seq=one.seq,
            kind=one.kind,
            at=one.at,
            data={name: value for name, value in one.data.items() if name not in kept_back},
        )
        for one in happened
    ]


def place_out(place: Place | None) -> PlaceOut | None:
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


def task_out(task: SetTask) -> TaskOut:
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
