"""Tasks that a course does without from some day on: out of learners' sight, while what was judged stays as it is.

A task that nobody has handed anything in for goes altogether. Judges nothing and changes no grade.
"""

from __future__ import annotations

from enum import StrEnum

from sqlalchemy import Connection, Row, delete, func, select, update

from grader.store.clock import database_now
from grader.store.courses.courses import lock_course
from grader.store.courses.exam_freeze import refuse_during_exam
from grader.store.database import Store
from grader.store.events import audit
from grader.store.grading.standings import recompute_standings
from grader.store.tables import CourseTaskRow, EventRow, SubmissionRow


class Withdrawal(StrEnum):
    """What became of a task that a course was to do without."""

    REMOVED = "removed"
    """Nobody had handed anything in: it is gone, with its dates."""
    WITHDRAWN = "withdrawn"
    """It is kept for its grades, and can be set again."""
    UNKNOWN = "unknown"
    """The course does not set it."""


def withdraw_task(
    store: Store, course_id: int, course_task_id: int, *, during_exam: bool = False, actor_id: int | None
) -> Withdrawal:
    """Take a task out of a course: nothing more is handed in for it, and totals and certificates do without it.

    What waits or runs is judged to its end. `during_exam`: even where it is an exam that is on.

    Raises:
        ExamRunsError: it is one.
    """
    with store.write() as connection:
        row = _locked(connection, course_id, course_task_id)
        if row is None or row.withdrawn_at is not None:
            return Withdrawal.UNKNOWN
        if not during_exam:
            refuse_during_exam(connection, course_task_id)
        done = Withdrawal.WITHDRAWN if _num_handed_in(connection, course_task_id) else Withdrawal.REMOVED
        if done is Withdrawal.REMOVED:
            connection.execute(delete(CourseTaskRow).where(CourseTaskRow.id == course_task_id))
        else:
            _set(connection, course_task_id, withdrawn=True)
            recompute_standings(connection, course_task_id)
        audit(
            connection,
            f"course:{course_id}",
            f"task_{done}",
            actor_id=actor_id,
            task=row.task,
            profile=row.profile,
        )
        return done


def set_task_again(store: Store, course_id: int, course_task_id: int, *, actor_id: int | None) -> bool:
    """Set a withdrawn task again, on the terms that it had; False: there is none that was withdrawn."""
    with store.write() as connection:
        row = _locked(connection, course_id, course_task_id)
        if row is None or row.withdrawn_at is None:
            return False
        _set(connection, course_task_id, withdrawn=False)
        recompute_standings(connection, course_task_id)
        audit(
            connection,
            f"course:{course_id}",
            "task_set_again",
            actor_id=actor_id,
            task=row.task,
            profile=row.profile,
        )
        return True


def num_submissions(store: Store, course_task_id: int) -> int:
    """How many submissions there are for a task of a course."""
    with store.read() as connection:
        return _num_handed_in(connection, course_task_id)


def removed_tasks(store: Store, course_id: int) -> frozenset[tuple[str, str]]:
    """(task, profile) of all that were ever removed: whoever sets tasks by rote leaves these to people."""
    with store.read() as connection:
        rows = connection.execute(
            select(EventRow.data).where(
                EventRow.subject == f"course:{course_id}", EventRow.kind == f"task_{Withdrawal.REMOVED}"
            )
        ).scalars()
        return frozenset((data["task"], data["profile"]) for data in rows)


def _locked(connection: Connection, course_id: int, course_task_id: int) -> Row[str, str, object] | None:
    lock_course(connection, course_id)
    # Whoever hands in just now has a hold on this row: they come first, or find that it is no longer there.
    return connection.execute(
        select(CourseTaskRow.task, CourseTaskRow.profile, CourseTaskRow.withdrawn_at)
        .where(CourseTaskRow.id == course_task_id, CourseTaskRow.course_id == course_id)
        .with_for_update()
    ).one_or_none()


def _num_handed_in(connection: Connection, course_task_id: int) -> int:
    statement = select(func.count()).where(SubmissionRow.course_task_id == course_task_id)
    return connection.execute(statement).scalar_one()


def _set(connection: Connection, course_task_id: int, *, withdrawn: bool) -> None:
    connection.execute(
        update(CourseTaskRow)
        .where(CourseTaskRow.id == course_task_id)
        .values(withdrawn_at=database_now() if withdrawn else None)
    )
