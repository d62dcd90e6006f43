"""Attempts as pages show them: one with all its facts, and lists with filters, page by page. Changes nothing."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import Select, and_, func, select
from sqlalchemy.orm import aliased

from grader.model.grade import Verdict
from grader.store.attempts.attempt_endings import StoredFile
from grader.store.courses.learners import Learners
from grader.store.database import Store
from grader.store.grading.credits import counts_for
from grader.store.grading.pseudonyms import key_column, pseudonym
from grader.store.tables import (
    ArtifactRow,
    AttemptRow,
    CourseTaskRow,
    CreditRow,
    EnrolmentRow,
    GradeCodeRow,
    GradeRow,
    PersonRow,
    SubmissionRow,
)
from grader.store.tables.attempt import AttemptState, Lane
from grader.store.tables.person import Role


@dataclass(frozen=True, slots=True)
class StoredAttempt:
    """An attempt; verdict and points as judged, None where there is no grade.

    Attributes:
        number: which of the learner's own at the task it is, from 1; a regrade has that of what it judges again.
        role, section: of whoever handed it in, in the course, now; role None: they take no part any more.
        anonymous: the task is graded so; `login` and `person` are a pseudonym, and `person_id` is nothing to be shown.
    """

    id: int
    number: int
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
    role: Role | None
    section: str | None
    anonymous: bool


@dataclass(frozen=True, slots=True)
class AttemptFilter:
    """Which attempts; None: any. `learners`: those of theirs alone; `named`: none of tasks that are graded anonymously.

    `person_id`: those that count for them, whoever of their group handed them in.
    """

    course_id: int | None = None
    course_task_id: int | None = None
    person_id: int | None = None
    state: AttemptState | None = None
    lane: Lane | None = None
    verdict: Verdict | None = None
    code: str | None = None
    learners: Learners | None = None
    named: bool = False


def attempt(store: Store, attempt_id: int) -> StoredAttempt | None:
    """One attempt, or None."""
    with store.read() as connection:
        row = connection.execute(_facts().where(AttemptRow.id == attempt_id)).one_or_none()
    return None if row is None else _stored(row)


def attempts(
    store: Store, wanted: AttemptFilter, *, before: int | None = None, limit: int = 50
) -> tuple[StoredAttempt, ...]:
    """Attempts, newest first; the next page is `before` the last id of this one."""
    statement = _facts()
    columns: dict[str, Any] = {
        "course_task_id": AttemptRow.course_task_id,
        "state": AttemptRow.state,
        "lane": AttemptRow.lane,
        "verdict": GradeRow.verdict,
    }
    for name, column in columns.items():
        value = getattr(wanted, name)
        if value is not None:
            statement = statement.where(column == value)
    if wanted.named:
        statement = statement.where(key_column(AttemptRow.course_task_id).is_(None))
    if wanted.person_id is not None:
        statement = statement.where(counts_for([wanted.person_id]))
    if wanted.course_id is not None and wanted.course_task_id is None and wanted.person_id is None:
        # Along the ids, newest first, up to the page's end. By the index of tasks, which `+ 0` hides, a whole course
        # would be read and sorted for every page.
        tasks = select(CourseTaskRow.id).where(CourseTaskRow.course_id == wanted.course_id)
        statement = statement.where((AttemptRow.course_task_id + 0).in_(tasks))
    elif wanted.course_id is not None:
        statement = statement.where(CourseTaskRow.course_id == wanted.course_id)
    if wanted.code is not None:
        found = select(GradeCodeRow.attempt_id).where(
            GradeCodeRow.attempt_id == AttemptRow.id, GradeCodeRow.code == wanted.code
        )
        statement = statement.where(found.exists())
    if wanted.learners is not None:
        course = CourseTaskRow.course_id if wanted.course_id is None else wanted.course_id
        statement = statement.where(wanted.learners.among(course))
    if before is not None:
        statement = statement.where(AttemptRow.id < before)
    newest = AttemptRow.id.desc()
    # Which they are first: what a page says of each is looked up for those alone, not for all that are sorted.
    page = (
        statement.with_only_columns(AttemptRow.id, maintain_column_froms=True).order_by(newest).limit(limit)
    )
    with store.read() as connection:
        rows = connection.execute(_facts().where(AttemptRow.id.in_(page)).order_by(newest))
        return tuple(map(_stored, rows))


def attempt_before(store: Store, facts: StoredAttempt) -> StoredAttempt | None:
    """The same learner's last judged attempt at that task that was handed in before this one, or None.

    Regrades are no attempts of their own.
    """
    statement = (
        _facts()
        .where(
            AttemptRow.course_task_id == facts.course_task_id,
            counts_for([facts.person_id]),
            AttemptRow.lane == Lane.INTERACTIVE,
            AttemptRow.state == AttemptState.JUDGED,
            AttemptRow.id < (facts.regrade_of or facts.id),
        )
        .order_by(AttemptRow.id.desc())
        .limit(1)
    )
    with store.read() as connection:
        row = connection.execute(statement).one_or_none()
    return None if row is None else _stored(row)


def files_of(store: Store, attempt_id: int) -> tuple[StoredFile, ...]:
    """The files that an attempt left in the file store, by name."""
    with store.read() as connection:
        rows = connection.execute(
            select(ArtifactRow.name, ArtifactRow.digest, ArtifactRow.size)
            .where(ArtifactRow.attempt_id == attempt_id)
            .order_by(ArtifactRow.name)
        )
        return tuple(StoredFile(*row) for row in rows)


def _stored(row: Any) -> StoredAttempt:
    facts = StoredAttempt(*row)
    key: str | None = row.anonymous
    if key is None:
        return replace(facts, anonymous=False)
    name = pseudonym(key, facts.person_id)
    return replace(facts, anonymous=True, person=name, login=name)


@cache
def _facts() -> Select[Any]:
    own, shared = aliased(AttemptRow), aliased(AttemptRow)
    # Of the learner's own, and of those of their group, as far as the one that it is or judges again.
    # `+ 0` hides the index of tasks: groups have few credits, and a task has thousands of attempts.
    counted = [
        (
            task == AttemptRow.course_task_id,
            one.lane == Lane.INTERACTIVE,
            one.id <= func.coalesce(AttemptRow.regrade_of, AttemptRow.id),
        )
        for one, task in ((own, own.course_task_id), (shared, shared.course_task_id + 0))
    ]
    of_own = select(func.count()).where(own.person_id == AttemptRow.person_id, *counted[0])
    of_others = (
        select(func.count())
        .select_from(CreditRow)
        .join(shared, shared.submission_id == CreditRow.submission_id)
        .where(CreditRow.person_id == AttemptRow.person_id, *counted[1])
    )
    elsewhere: dict[str, Any] = {
        "number": of_own.correlate(AttemptRow).scalar_subquery()
        + of_others.correlate(AttemptRow).scalar_subquery(),
        "submission": SubmissionRow.name,
        "login": PersonRow.login,
        "person": PersonRow.name,
        "course_id": CourseTaskRow.course_id,
        "verdict": GradeRow.verdict,
        "points": GradeRow.points,
        "max_points": GradeRow.max_points,
        "role": EnrolmentRow.role,
        "section": EnrolmentRow.section,
        "anonymous": key_column(AttemptRow.course_task_id).label("anonymous"),
    }
    columns = [
        elsewhere[field.name] if field.name in elsewhere else getattr(AttemptRow, field.name)
        for field in fields(StoredAttempt)
    ]
    return (
        select(*columns)
        .select_from(AttemptRow)
        .join(SubmissionRow, SubmissionRow.id == AttemptRow.submission_id)
        .join(PersonRow, PersonRow.id == AttemptRow.person_id)
        .join(CourseTaskRow, CourseTaskRow.id == AttemptRow.course_task_id)
        .outerjoin(GradeRow, GradeRow.attempt_id == AttemptRow.id)
        .outerjoin(
            EnrolmentRow,
            and_(
                EnrolmentRow.course_id == CourseTaskRow.course_id,
                EnrolmentRow.person_id == AttemptRow.person_id,
            ),
        )
    )
