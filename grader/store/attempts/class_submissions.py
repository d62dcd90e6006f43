"""What a whole class has handed in for one task: grades for exports, files for comparing. Changes nothing.

Learners who take part in the course now, by pseudonyms where the task is graded so; one attempt each: the one that
counts, or else their last. Rows come one at a time, so that five hundred grades need not lie in memory at once.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, and_, case, func, select
from sqlalchemy.orm import aliased

from grader.model.attempt_result import AttemptResult
from grader.model.submission import SourceFile
from grader.store.attempts.attempt_results import JUDGED_ATTEMPTS, RESULT_COLUMNS, result_of
from grader.store.database import Store
from grader.store.grading.pseudonyms import key_column, pseudonym
from grader.store.tables import (
    AttemptRow,
    CourseTaskRow,
    DeletedContentRow,
    EnrolmentRow,
    GradeRow,
    PersonRow,
    SourceRow,
    StandingRow,
    SubmissionRow,
)
from grader.store.tables.attempt import Lane
from grader.store.tables.person import Role


@dataclass(frozen=True, slots=True)
class CountedAttempt:
    """The attempt that counts for one learner in a task, with its grade as judged (`document`) and as it counts."""

    person_id: int
    login: str
    name: str
    attempt_id: int
    result: AttemptResult
    document: str


@dataclass(frozen=True, slots=True)
class LastSubmission:
    """The last thing that one learner handed in for a task."""

    person_id: int
    login: str
    name: str
    attempt_id: int
    files: tuple[SourceFile, ...]

    @classmethod
    def of(cls, row: Sequence[Any]) -> LastSubmission:
        """From the key of pseudonyms and columns in the order of the fields, the files as they are stored."""
        attempt_id, files = row[4:6]
        return cls(*_named(*row[:4]), attempt_id, tuple(SourceFile(path, text) for path, text in files))


def counted_attempts(store: Store, course_task_id: int) -> Generator[CountedAttempt]:
    """What counts in a task, learner by learner, by name."""
    # Of the learner, who of their group handed it in may have left.
    learning = aliased(EnrolmentRow)
    statement = (
        select(
            PersonRow.id.label("person_id"),
            PersonRow.login,
            PersonRow.name,
            StandingRow.attempt_id,
            GradeRow.document,
            key_column(StandingRow.course_task_id).label("key"),
            *RESULT_COLUMNS,
        )
        .select_from(JUDGED_ATTEMPTS)
        .join(StandingRow, StandingRow.attempt_id == AttemptRow.id)
        .join(PersonRow, PersonRow.id == StandingRow.person_id)
        .join(
            learning, and_(learning.person_id == PersonRow.id, learning.course_id == CourseTaskRow.course_id)
        )
        .where(StandingRow.course_task_id == course_task_id, learning.role == Role.LEARNER)
        .order_by(_named_order(StandingRow.course_task_id), StandingRow.attempt_id, PersonRow.id)
    )
    with store.read() as connection:
        for row in connection.execution_options(yield_per=50).execute(statement):
            named = _named(row.key, row.person_id, row.login, row.name)
            yield CountedAttempt(*named, row.attempt_id, result_of(row), row.document)


def last_submissions(store: Store, course_task_id: int, *, limit: int = 500) -> tuple[LastSubmission, ...]:
    """The last submission of each learner of a task, by name; of more than `limit` learners those who came last."""
    last = (
        select(func.max(AttemptRow.id).label("id"))
        .where(AttemptRow.course_task_id == course_task_id, AttemptRow.lane == Lane.INTERACTIVE)
        .group_by(AttemptRow.person_id)
        .order_by(func.max(AttemptRow.id).desc())
        .limit(limit)
        .subquery()
    )
    statement = (
        select(
            key_column(AttemptRow.course_task_id),
            *(PersonRow.id, PersonRow.login, PersonRow.name, AttemptRow.id, SourceRow.files),
        )
        .select_from(last)
        .join(AttemptRow, AttemptRow.id == last.c.id)
        .join(PersonRow, PersonRow.id == AttemptRow.person_id)
        .join(CourseTaskRow, CourseTaskRow.id == AttemptRow.course_task_id)
        .join(
            EnrolmentRow,
            and_(EnrolmentRow.course_id == CourseTaskRow.course_id, EnrolmentRow.person_id == PersonRow.id),
        )
        .join(SubmissionRow, SubmissionRow.id == AttemptRow.submission_id)
        .join(SourceRow, SourceRow.digest == SubmissionRow.digest)
        .outerjoin(DeletedContentRow, DeletedContentRow.attempt_id == AttemptRow.id)
        .where(EnrolmentRow.role == Role.LEARNER, DeletedContentRow.scripts_at.is_(None))
        .order_by(_named_order(AttemptRow.course_task_id), AttemptRow.id)
    )
    with store.read() as connection:
        rows: Iterable[Sequence[Any]] = connection.execute(statement)
        return tuple(map(LastSubmission.of, rows))


def _named_order(course_task_id: Any) -> ColumnElement[Any]:
    """By name, where that is what people are called: in the order of names pseudonyms would hide little."""
    return case((key_column(course_task_id).is_(None), PersonRow.name), else_=None)


def _named(key: str | None, person_id: int, login: str, name: str) -> tuple[int, str, str]:
    """Number, login and name; both are a pseudonym where that key holds."""
    return (person_id, login, name) if key is None else (person_id, *2 * (pseudonym(key, person_id),))


def work_of(store: Store, attempt_id: int) -> tuple[LastSubmission, int, str] | None:
    """A learner's submission with its course and the name of its task, or None: it is not there, or of nobody's now."""
    statement = (
        select(
            key_column(AttemptRow.course_task_id),
            *(PersonRow.id, PersonRow.login, PersonRow.name, AttemptRow.id, SourceRow.files),
            *(CourseTaskRow.course_id, CourseTaskRow.task),
        )
        .select_from(AttemptRow)
        .join(PersonRow, PersonRow.id == AttemptRow.person_id)
        .join(CourseTaskRow, CourseTaskRow.id == AttemptRow.course_task_id)
        .join(
            EnrolmentRow,
            and_(EnrolmentRow.course_id == CourseTaskRow.course_id, EnrolmentRow.person_id == PersonRow.id),
        )
        .join(SubmissionRow, SubmissionRow.id == AttemptRow.submission_id)
        .join(SourceRow, SourceRow.digest == SubmissionRow.digest)
        .outerjoin(DeletedContentRow, DeletedContentRow.attempt_id == AttemptRow.id)
        .where(
            AttemptRow.id == attempt_id,
            EnrolmentRow.role == Role.LEARNER,
            DeletedContentRow.scripts_at.is_(None),
        )
    )
    with store.read() as connection:
        row = connection.execute(statement).one_or_none()
    return None if row is None else (LastSubmission.of(row), row.course_id, row.task)


def judged_by_another_version(store: Store, course_task_id: int, version: str) -> tuple[int, ...]:
    """Attempts that count in a task and were judged by another version than this one, by id."""
    with store.read() as connection:
        return tuple(
            connection.execute(
                select(StandingRow.attempt_id)
                .join(AttemptRow, AttemptRow.id == StandingRow.attempt_id)
                .where(StandingRow.course_task_id == course_task_id, AttemptRow.task_version != version)
                .order_by(StandingRow.attempt_id)
            ).scalars()
        )
