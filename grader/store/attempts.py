"""Attempts as pages show them: one with all its facts, and lists with filters, page by page. Changes nothing."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from sqlalchemy import Select, select

from grader.model.grade import Verdict
from grader.store.database import Store
from grader.store.endings import StoredFile
from grader.store.tables import Artifact, Attempt, CourseTask, GradeCode, GradeRecord, Person, SubmissionRow
from grader.store.tables.attempt import AttemptState, Lane


@dataclass(frozen=True, slots=True)
class AttemptFacts:
    """An attempt; verdict and points as judged, None where there is no grade."""

    id: int
    submission_id: int
    submission: str
    digest: str
    person_id: int
    login: str
    person: str
    course_id: int
    course_task_id: int
    task: str
    task_version: str
    profile: str
    need: str
    lane: Lane
    state: AttemptState
    queued_at: datetime
    claimed_at: datetime | None
    finished_at: datetime | None
    phase: str | None
    worker: str | None
    tries: int
    cancel_requested_at: datetime | None
    cached_from: int | None
    regrade_of: int | None
    counts: bool
    failure: str | None
    event_seq: int
    verdict: Verdict | None
    points: float | None
    max_points: float | None


@dataclass(frozen=True, slots=True)
class Filter:
    """Which attempts; None: any."""

    course_id: int | None = None
    course_task_id: int | None = None
    person_id: int | None = None
    state: AttemptState | None = None
    lane: Lane | None = None
    verdict: Verdict | None = None
    code: str | None = None


def attempt(store: Store, attempt_id: int) -> AttemptFacts | None:
    """One attempt, or None."""
    with store.read() as connection:
        row = connection.execute(_facts().where(Attempt.id == attempt_id)).one_or_none()
    return None if row is None else AttemptFacts(*row)


def attempts(
    store: Store, wanted: Filter, *, before: int | None = None, limit: int = 50
) -> tuple[AttemptFacts, ...]:
    """Attempts, newest first; the next page is `before` the last id of this one."""
    statement = _facts()
    columns: dict[str, Any] = {
        "course_task_id": Attempt.course_task_id,
        "person_id": Attempt.person_id,
        "state": Attempt.state,
        "lane": Attempt.lane,
        "verdict": GradeRecord.verdict,
    }
    for name, column in columns.items():
        value = getattr(wanted, name)
        if value is not None:
            statement = statement.where(column == value)
    if wanted.course_id is not None and wanted.course_task_id is None and wanted.person_id is None:
        # Along the ids, newest first, up to the page's end. By the index of tasks, which `+ 0` hides, a whole course
        # would be read and sorted for every page.
        tasks = select(CourseTask.id).where(CourseTask.course_id == wanted.course_id)
        statement = statement.where((Attempt.course_task_id + 0).in_(tasks))
    elif wanted.course_id is not None:
        statement = statement.where(CourseTask.course_id == wanted.course_id)
    if wanted.code is not None:
        found = select(GradeCode.attempt_id).where(
            GradeCode.attempt_id == Attempt.id, GradeCode.code == wanted.code
        )
        statement = statement.where(found.exists())
    if before is not None:
        statement = statement.where(Attempt.id < before)
    with store.read() as connection:
        rows = connection.execute(statement.order_by(Attempt.id.desc()).limit(limit))
        return tuple(AttemptFacts(*row) for row in rows)


def files_of(store: Store, attempt_id: int) -> tuple[StoredFile, ...]:
    """The files that an attempt left in the file store, by name."""
    with store.read() as connection:
        rows = connection.execute(
            select(Artifact.name, Artifact.digest, Artifact.size)
            .where(Artifact.attempt_id == attempt_id)
            .order_by(Artifact.name)
        )
        return tuple(StoredFile(*row) for row in rows)


def _facts() -> Select[Any]:
    elsewhere: dict[str, Any] = {
        "submission": SubmissionRow.name,
        "login": Person.login,
        "person": Person.name,
        "course_id": CourseTask.course_id,
        "verdict": GradeRecord.verdict,
        "points": GradeRecord.points,
        "max_points": GradeRecord.max_points,
    }
    columns = [
        elsewhere[field.name] if field.name in elsewhere else getattr(Attempt, field.name)
        for field in fields(AttemptFacts)
    ]
    return (
        select(*columns)
        .select_from(Attempt)
        .join(SubmissionRow, SubmissionRow.id == Attempt.submission_id)
        .join(Person, Person.id == Attempt.person_id)
        .join(CourseTask, CourseTask.id == Attempt.course_task_id)
        .outerjoin(GradeRecord, GradeRecord.attempt_id == Attempt.id)
    )
