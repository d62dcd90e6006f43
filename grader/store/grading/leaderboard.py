"""Whose accepted attempts may be told to the class, for its leaderboards: of those who chose a name for it.

What ranks them is worked out by whoever shows it. Changes nothing but names.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import and_, delete, func, or_, select

from grader.errors import UsageError
from grader.model.grade import Verdict
from grader.store.clock import database_now
from grader.store.database import Store
from grader.store.tables import (
    CourseTaskRow,
    EnrolmentRow,
    ExtensionRow,
    LeaderboardNameRow,
    StandingRow,
)
from grader.store.tables.person import Role
from grader.store.upsert import upsert

MOST_NAME = 40


@dataclass(frozen=True, slots=True)
class RankedAttempt:
    """The accepted attempt that counts for a learner; `name`: of their choice, None: they want none shown."""

    person_id: int
    name: str | None
    attempt_id: int
    points: float


def ranked_attempts(store: Store, course_task_id: int) -> tuple[RankedAttempt, ...]:
    """Of all learners of a course, by number; none of which its own learner is not told yet, and none that is held."""
    due_at = func.coalesce(ExtensionRow.due_at, CourseTaskRow.due_at)
    with store.read() as connection:
        rows = connection.execute(
            select(StandingRow.person_id, LeaderboardNameRow.name, StandingRow.attempt_id, StandingRow.points)
            .join(CourseTaskRow, CourseTaskRow.id == StandingRow.course_task_id)
            .join(
                EnrolmentRow,
                and_(
                    EnrolmentRow.course_id == CourseTaskRow.course_id,
                    EnrolmentRow.person_id == StandingRow.person_id,
                ),
            )
            .outerjoin(
                ExtensionRow,
                and_(
                    ExtensionRow.enrolment_id == EnrolmentRow.id,
                    ExtensionRow.course_task_id == CourseTaskRow.id,
                ),
            )
            .outerjoin(
                LeaderboardNameRow,
                and_(
                    LeaderboardNameRow.course_id == CourseTaskRow.course_id,
                    LeaderboardNameRow.person_id == StandingRow.person_id,
                ),
            )
            .where(
                StandingRow.course_task_id == course_task_id,
                StandingRow.verdict == Verdict.ACCEPTED,
                EnrolmentRow.role == Role.LEARNER,
                or_(CourseTaskRow.hidden_until_due.is_(False), due_at.is_(None), due_at < database_now()),
            )
            .order_by(StandingRow.person_id)
        )
        return tuple(RankedAttempt(*row) for row in rows)


def leaderboard_name(store: Store, course_id: int, person_id: int) -> str | None:
    """Under which name somebody wants to be seen; None: not at all."""
    with store.read() as connection:
        return connection.execute(
            select(LeaderboardNameRow.name).where(
                LeaderboardNameRow.course_id == course_id, LeaderboardNameRow.person_id == person_id
            )
        ).scalar_one_or_none()


def set_leaderboard_name(store: Store, course_id: int, person_id: int, name: str) -> None:
    """Be seen under this name; "": not at all.

    Raises:
        UsageError: somebody else is seen under it, or it is too long.
    """
    name = " ".join(name.split())
    if len(name) > MOST_NAME:
        raise UsageError(f"at most {MOST_NAME} characters, please")
    own = (LeaderboardNameRow.course_id == course_id, LeaderboardNameRow.person_id == person_id)
    with store.write() as connection:
        if not name:
            connection.execute(delete(LeaderboardNameRow).where(*own))
            return
        taken = connection.execute(
            select(LeaderboardNameRow.person_id).where(
                LeaderboardNameRow.course_id == course_id,
                func.lower(LeaderboardNameRow.name) == name.lower(),
                LeaderboardNameRow.person_id != person_id,
            )
        ).first()
        if taken is not None:
            raise UsageError("somebody else is seen under that name")
        values = {"course_id": course_id, "person_id": person_id, "name": name}
        connection.execute(
            upsert(connection, LeaderboardNameRow, ["course_id", "person_id"], values, update=["name"])
        )
