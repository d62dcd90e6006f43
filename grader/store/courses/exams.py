"""Exams: a task of a course that each learner has their own time for, from the moment when they begin it.

The window is the task's: it opens and is due. What is asked is shown to who has begun, what was handed in is taken
until their time or the window ends, and how it went is told when the staff says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, and_, func, insert, select, update

from grader.errors import UsageError
from grader.store.attempts.eligibility import refusals_of, terms_of
from grader.store.attempts.limits import ExamTime, Limit, Refusal
from grader.store.clock import database_now
from grader.store.database import Store
from grader.store.delivery.notices import CHANNEL as MAIL
from grader.store.delivery.postponed_deliveries import hasten
from grader.store.events import audit
from grader.store.lti.lti_scores import CHANNEL as PLATFORM
from grader.store.tables import (
    AttemptRow,
    CourseTaskRow,
    EnrolmentRow,
    ExamSittingRow,
    ExtensionRow,
    PersonRow,
)
from grader.store.tables.attempt import Lane
from grader.store.tables.person import Role


@dataclass(frozen=True, slots=True)
class Sitting:
    """One learner at an exam, who may not have begun; `num_attempts`: handed in so far."""

    person_id: int
    login: str
    name: str
    time: ExamTime
    num_attempts: int


@dataclass(frozen=True, slots=True)
class ExamOverview:
    """An exam as it is now: everybody's sitting, by name."""

    now: datetime
    sittings: tuple[Sitting, ...]

    @property
    def num_begun(self) -> int:
        """How many have begun."""
        return sum(one.time.begun_at is not None for one in self.sittings)

    @property
    def num_at_work(self) -> int:
        """How many have time left."""
        return sum(one.time.ends_at is not None and one.time.ends_at > self.now for one in self.sittings)


def begin(store: Store, course_task_id: int, person_id: int) -> ExamTime | Refusal:
    """Let somebody's own time begin, and say when it ends; once more changes nothing.

    Raises:
        UsageError: it is no exam.
    """
    pair = person_id, course_task_id
    with store.write() as connection:
        # Locks the enrolment: of two clicks the second finds that it has begun.
        terms, groups = terms_of(connection, [pair])
        if pair not in terms:
            return Refusal(Limit.NOT_ENROLLED)
        if terms[pair].exam_minutes is None:
            raise UsageError("this task is no exam: there is nothing to begin")
        refusal = refusals_of(connection, terms, groups).get(pair)
        if terms[pair].begun_at is None:
            if refusal is not None and refusal.limit is not Limit.EXAM_NOT_BEGUN:
                return refusal
            connection.execute(
                insert(ExamSittingRow).values(
                    course_task_id=course_task_id, person_id=person_id, begun_at=database_now()
                )
            )
        found = _exam_time(connection, course_task_id, person_id)
        assert found is not None, "it is an exam"
        return found


def exam_time(store: Store, course_task_id: int, person_id: int) -> ExamTime | None:
    """The time that somebody has in an exam; None: the task is none."""
    with store.read() as connection:
        return _exam_time(connection, course_task_id, person_id)


def exam_overview(store: Store, course_task_id: int) -> ExamOverview:
    """Who of the course's learners has begun an exam, and who has how long left."""
    attempts = (
        select(func.count())
        .where(
            AttemptRow.person_id == EnrolmentRow.person_id,
            AttemptRow.course_task_id == course_task_id,
            AttemptRow.lane == Lane.INTERACTIVE,
        )
        .correlate(EnrolmentRow)
        .scalar_subquery()
    )
    with store.read() as connection:
        rows = connection.execute(
            _TIMES.add_columns(PersonRow.id, PersonRow.login, PersonRow.name, attempts)
            .join(PersonRow, PersonRow.id == EnrolmentRow.person_id)
            .where(CourseTaskRow.id == course_task_id, EnrolmentRow.role == Role.LEARNER)
            .order_by(PersonRow.name, PersonRow.id)
        ).all()
        now = connection.execute(select(database_now())).scalar_one()
    sittings = tuple(Sitting(row[5], row[6], row[7], _time(row), row[8]) for row in rows)
    return ExamOverview(now, sittings)


def release_feedback(
    store: Store, course_id: int, course_task_id: int, released: bool, *, actor_id: int | None
) -> bool:
    """Tell learners how their exam went, or hide it again; False: it is no exam of this course, or so already.

    Mails about it, and what platforms are to know, have waited for that.
    """
    with store.write() as connection:
        there = CourseTaskRow.released_at.is_(None) if released else CourseTaskRow.released_at.is_not(None)
        task = connection.execute(
            update(CourseTaskRow)
            .where(
                CourseTaskRow.id == course_task_id,
                CourseTaskRow.course_id == course_id,
                CourseTaskRow.exam_minutes.is_not(None),
                there,
            )
            .values(released_at=database_now() if released else None)
            .returning(CourseTaskRow.task)
        ).scalar_one_or_none()
        if task is not None:
            kind = "feedback_released" if released else "feedback_hidden"
            audit(connection, f"course:{course_id}", kind, actor_id=actor_id, task=task)
            if released:
                hasten(connection, course_id, (MAIL, PLATFORM))
        return task is not None


def _exam_time(connection: Connection, course_task_id: int, person_id: int) -> ExamTime | None:
    row = connection.execute(
        _TIMES.where(CourseTaskRow.id == course_task_id, EnrolmentRow.person_id == person_id)
    ).one_or_none()
    return None if row is None else _time(row)


def _time(row: Any) -> ExamTime:
    return ExamTime(row.exam_minutes, row.extra_minutes or 0, row.begun_at, row.extended or row.due_at)


_TIMES = (
    select(
        CourseTaskRow.exam_minutes,
        CourseTaskRow.due_at,
        ExtensionRow.due_at.label("extended"),
        ExtensionRow.extra_minutes,
        ExamSittingRow.begun_at,
    )
    .select_from(CourseTaskRow)
    .join(EnrolmentRow, EnrolmentRow.course_id == CourseTaskRow.course_id)
    .outerjoin(
        ExtensionRow,
        and_(ExtensionRow.enrolment_id == EnrolmentRow.id, ExtensionRow.course_task_id == CourseTaskRow.id),
    )
    .outerjoin(
        ExamSittingRow,
        and_(
            ExamSittingRow.course_task_id == CourseTaskRow.id,
            ExamSittingRow.person_id == EnrolmentRow.person_id,
        ),
    )
    .where(CourseTaskRow.exam_minutes.is_not(None))
)
