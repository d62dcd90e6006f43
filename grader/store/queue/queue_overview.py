"""What stands in the queue and what runs just now, as the staff's queue page shows it. Claims and changes nothing."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import func, select

from grader.store.clock import database_now
from grader.store.courses.learners import Learners
from grader.store.database import Store
from grader.store.grading.pseudonyms import key_column, shown_name
from grader.store.tables import AttemptRow, CourseRow, CourseTaskRow, PersonRow
from grader.store.tables.attempt import AttemptState, Lane


@dataclass(frozen=True, slots=True)
class WaitingCount:
    """How many attempts wait in one lane for one need, and how long the oldest of them does, seconds."""

    lane: Lane
    need: str
    number: int
    oldest_s: float


@dataclass(frozen=True, slots=True)
class RunningAttempt:
    """An attempt that is judged just now.

    Attributes:
        since_s: seconds since it was claimed; lease_s: seconds that its lease still holds, negative: it has run out.
        cancelling: it was asked to end.
    """

    attempt_id: int
    course_id: int
    course: str
    task: str
    login: str
    lane: Lane
    worker: str | None
    phase: str | None
    tries: int
    since_s: float
    lease_s: float
    cancelling: bool


def waiting_counts(store: Store) -> tuple[WaitingCount, ...]:
    """What waits, by lane and need."""
    with store.read() as connection:
        rows = connection.execute(
            select(
                AttemptRow.lane, AttemptRow.need, func.count(), func.min(AttemptRow.queued_at), database_now()
            )
            .where(AttemptRow.state == AttemptState.QUEUED)
            .group_by(AttemptRow.lane, AttemptRow.need)
            .order_by(AttemptRow.lane, AttemptRow.need)
        )
        return tuple(
            WaitingCount(lane, need, number, (now - oldest).total_seconds())
            for lane, need, number, oldest, now in rows
        )


def num_waiting(store: Store, course_id: int, learners: Learners | None = None) -> int:
    """How many attempts of one course wait, of everybody (None) or of some learners."""
    statement = (
        select(func.count())
        .select_from(AttemptRow)
        .join(CourseTaskRow, CourseTaskRow.id == AttemptRow.course_task_id)
        .where(CourseTaskRow.course_id == course_id, AttemptRow.state == AttemptState.QUEUED)
    )
    if learners is not None:
        statement = statement.where(learners.among(course_id))
    with store.read() as connection:
        return connection.execute(statement).scalar_one()


def running_attempts(store: Store) -> tuple[RunningAttempt, ...]:
    """What runs, the longest running first."""
    with store.read() as connection:
        rows = connection.execute(
            select(
                AttemptRow.id,
                CourseRow.id,
                CourseRow.name,
                AttemptRow.task,
                PersonRow.login,
                AttemptRow.lane,
                AttemptRow.worker,
                AttemptRow.phase,
                AttemptRow.tries,
                AttemptRow.claimed_at,
                AttemptRow.lease_until,
                AttemptRow.cancel_requested_at.is_not(None),
                database_now(),
                AttemptRow.person_id,
                key_column(AttemptRow.course_task_id),
            )
            .join(CourseTaskRow, CourseTaskRow.id == AttemptRow.course_task_id)
            .join(CourseRow, CourseRow.id == CourseTaskRow.course_id)
            .join(PersonRow, PersonRow.id == AttemptRow.person_id)
            .where(AttemptRow.state == AttemptState.RUNNING)
            .order_by(AttemptRow.claimed_at, AttemptRow.id)
        ).all()
    return tuple(
        RunningAttempt(
            *row[:4],
            shown_name(row[14], row[13], row[4]) or "",
            *row[5:9],
            since_s=(row[12] - row[9]).total_seconds() if row[9] else 0.0,
            lease_s=(row[10] - row[12]).total_seconds() if row[10] else 0.0,
            cancelling=row[11],
        )
        for row in rows
    )
