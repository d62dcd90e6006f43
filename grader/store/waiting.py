"""What stands in the queue and what runs just now, as the staff's queue page shows it. Claims and changes nothing."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import func, select

from grader.store.clock import database_now
from grader.store.database import Store
from grader.store.tables import Attempt, Course, CourseTask, Person
from grader.store.tables.attempt import AttemptState, Lane


@dataclass(frozen=True, slots=True)
class Waiting:
    """How many attempts wait in one lane for one need, and how long the oldest of them does, seconds."""

    lane: Lane
    need: str
    number: int
    oldest_s: float


@dataclass(frozen=True, slots=True)
class Running:
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


def waiting(store: Store) -> tuple[Waiting, ...]:
    """What waits, by lane and need."""
    with store.read() as connection:
        rows = connection.execute(
            select(Attempt.lane, Attempt.need, func.count(), func.min(Attempt.queued_at), database_now())
            .where(Attempt.state == AttemptState.QUEUED)
            .group_by(Attempt.lane, Attempt.need)
            .order_by(Attempt.lane, Attempt.need)
        )
        return tuple(
            Waiting(lane, need, number, (now - oldest).total_seconds())
            for lane, need, number, oldest, now in rows
        )


def running(store: Store) -> tuple[Running, ...]:
    """What runs, the longest running first."""
    with store.read() as connection:
        rows = connection.execute(
            select(
                Attempt.id,
                Course.id,
                Course.name,
                Attempt.task,
                Person.login,
                Attempt.lane,
                Attempt.worker,
                Attempt.phase,
                Attempt.tries,
                Attempt.claimed_at,
                Attempt.lease_until,
                Attempt.cancel_requested_at.is_not(None),
                database_now(),
            )
            .join(CourseTask, CourseTask.id == Attempt.course_task_id)
            .join(Course, Course.id == CourseTask.course_id)
            .join(Person, Person.id == Attempt.person_id)
            .where(Attempt.state == AttemptState.RUNNING)
            .order_by(Attempt.claimed_at, Attempt.id)
        ).all()
    return tuple(
        Running(
            *row[:9],
            since_s=(row[12] - row[9]).total_seconds() if row[9] else 0.0,
            lease_s=(row[10] - row[12]).total_seconds() if row[10] else 0.0,
            cancelling=row[11],
        )
        for row in rows
    )
