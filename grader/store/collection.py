"""What a whole class has handed in for one task: grades for exports, files for comparing. Changes nothing.

Learners who take part in the course now, one attempt each: the one that counts, or else their last. Rows come one at
a time, so that five hundred grades need not lie in memory at once.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import and_, func, select

from grader.model.grade import Verdict
from grader.model.submission import SourceFile
from grader.store.database import Store
from grader.store.tables import (
    Attempt,
    CourseTask,
    Enrolment,
    GradeRecord,
    Person,
    Source,
    Standing,
    SubmissionRow,
)
from grader.store.tables.attempt import Lane
from grader.store.tables.person import Role


@dataclass(frozen=True, slots=True)
class Counting:
    """The attempt that counts for one learner in a task, with its grade as judged (`document`) and as it counts."""

    person_id: int
    login: str
    name: str
    attempt_id: int
    verdict: Verdict
    points: float
    max_points: float
    late_days: int
    overridden: bool
    document: str


@dataclass(frozen=True, slots=True)
class HandedIn:
    """The last thing that one learner handed in for a task."""

    person_id: int
    login: str
    name: str
    attempt_id: int
    files: tuple[SourceFile, ...]


def counting(store: Store, course_task_id: int) -> Generator[Counting]:
    """What counts in a task, learner by learner, by name."""
    statement = (
        select(
            Person.id,
            Person.login,
            Person.name,
            Standing.attempt_id,
            Standing.verdict,
            Standing.points,
            Standing.max_points,
            Standing.late_days,
            Standing.overridden,
            GradeRecord.document,
        )
        .select_from(Standing)
        .join(Person, Person.id == Standing.person_id)
        .join(CourseTask, CourseTask.id == Standing.course_task_id)
        .join(Enrolment, and_(Enrolment.course_id == CourseTask.course_id, Enrolment.person_id == Person.id))
        .join(GradeRecord, GradeRecord.attempt_id == Standing.attempt_id)
        .where(Standing.course_task_id == course_task_id, Enrolment.role == Role.LEARNER)
        .order_by(Person.name, Person.id)
    )
    with store.read() as connection:
        rows: Iterable[Sequence[Any]] = connection.execution_options(yield_per=50).execute(statement)
        for row in rows:
            yield Counting(*row)


def last_handed_in(store: Store, course_task_id: int, *, limit: int = 500) -> tuple[HandedIn, ...]:
    """The last submission of each learner of a task, by name; of more than `limit` learners those who came last."""
    last = (
        select(func.max(Attempt.id).label("id"))
        .where(Attempt.course_task_id == course_task_id, Attempt.lane == Lane.INTERACTIVE)
        .group_by(Attempt.person_id)
        .order_by(func.max(Attempt.id).desc())
        .limit(limit)
        .subquery()
    )
    statement = (
        select(Person.id, Person.login, Person.name, Attempt.id, Source.files)
        .select_from(last)
        .join(Attempt, Attempt.id == last.c.id)
        .join(Person, Person.id == Attempt.person_id)
        .join(CourseTask, CourseTask.id == Attempt.course_task_id)
        .join(Enrolment, and_(Enrolment.course_id == CourseTask.course_id, Enrolment.person_id == Person.id))
        .join(SubmissionRow, SubmissionRow.id == Attempt.submission_id)
        .join(Source, Source.digest == SubmissionRow.digest)
        .where(Enrolment.role == Role.LEARNER)
        .order_by(Person.name, Person.id)
    )
    with store.read() as connection:
        rows: Iterable[Sequence[Any]] = connection.execute(statement)
        return tuple(HandedIn(*(*row[:4], _files(row[4]))) for row in rows)


def _files(stored: Sequence[Sequence[str]]) -> tuple[SourceFile, ...]:
    return tuple(SourceFile(path, text) for path, text in stored)


def judged_otherwise(store: Store, course_task_id: int, version: str) -> tuple[int, ...]:
    """Attempts that count in a task and were judged by another version than this one, by id."""
    with store.read() as connection:
        return tuple(
            connection.execute(
                select(Standing.attempt_id)
                .join(Attempt, Attempt.id == Standing.attempt_id)
                .where(Standing.course_task_id == course_task_id, Attempt.task_version != version)
                .order_by(Standing.attempt_id)
            ).scalars()
        )
