"""An attempt and its regrades, which people's remarks and decisions hold for alike; locked by whoever adds to them."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import Connection, select, update

from grader.errors import UsageError
from grader.store.courses.archived_courses import refuse_archived_tasks
from grader.store.tables import AttemptRow


class LockedAttempt(NamedTuple):
    """An attempt whose row is locked: who handed it in, for which task of a course, the number of its next event."""

    person_id: int
    course_task_id: int
    seq: int


def lock_attempt(connection: Connection, attempt_id: int) -> LockedAttempt:
    """Lock an attempt and take its next event's number.

    Raises:
        UsageError: there is no such attempt.
    """
    row = connection.execute(
        update(AttemptRow)
        .where(AttemptRow.id == attempt_id)
        .values(event_seq=AttemptRow.event_seq + 1)
        .returning(AttemptRow.person_id, AttemptRow.course_task_id, AttemptRow.event_seq)
    ).one_or_none()
    if row is None:
        raise UsageError(f"there is no attempt {attempt_id}")
    refuse_archived_tasks(connection, [row.course_task_id])
    return LockedAttempt(row.person_id, row.course_task_id, row.event_seq)


def family_of(connection: Connection, attempt_id: int) -> list[int]:
    """The attempt that was handed in, and its regrades."""
    root = connection.execute(
        select(AttemptRow.regrade_of).where(AttemptRow.id == attempt_id)
    ).scalar_one_or_none()
    first = attempt_id if root is None else root
    regrades = connection.execute(select(AttemptRow.id).where(AttemptRow.regrade_of == first)).scalars()
    return [first, *regrades]
