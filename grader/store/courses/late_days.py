"""Late days: how many a course gives its learners, and how many of them are in use.

What is used follows from the attempts that count, see `standings`. A late day moves a due date by a day, for whoever
is late, by itself.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, and_, bindparam, delete, func, select, update

from grader.store.attempts.limits import LateBank, days_late, free_days_wanted
from grader.store.database import Store
from grader.store.events import audit
from grader.store.grading.standings import recompute_standings
from grader.store.tables import (
    AttemptRow,
    CourseRow,
    CourseTaskRow,
    EnrolmentRow,
    ExtensionRow,
    LateDayUseRow,
    StandingRow,
    SubmissionRow,
)
from grader.store.tables.attempt import AttemptState, Lane


def days_in_use(
    connection: Connection, course_ids: Collection[int], person_ids: Collection[int]
) -> dict[tuple[int, int], dict[int, int]]:
    """(course, person) → task of the course → late days that are in use for it; none: absent.

    Those of the attempt that counts; and of what is not judged yet those that it would take if it counted.
    """
    found: dict[tuple[int, int], dict[int, int]] = {}
    counting = connection.execute(
        select(CourseTaskRow.course_id, StandingRow.person_id, StandingRow.course_task_id, LateDayUseRow.days)
        .select_from(StandingRow)
        .join(AttemptRow, AttemptRow.id == StandingRow.attempt_id)
        .join(
            LateDayUseRow,
            and_(
                LateDayUseRow.attempt_id == func.coalesce(AttemptRow.regrade_of, AttemptRow.id),
                LateDayUseRow.person_id == StandingRow.person_id,
            ),
        )
        .join(CourseTaskRow, CourseTaskRow.id == StandingRow.course_task_id)
        .where(CourseTaskRow.course_id.in_(course_ids), StandingRow.person_id.in_(person_ids))
    )
    for course_id, person_id, task_id, days in counting:
        found.setdefault((course_id, person_id), {})[task_id] = days
    for row in connection.execute(_UNJUDGED, {"courses": list(course_ids), "people": list(person_ids)}):
        late = days_late(row.submitted_at, row.due_at, row.grace_minutes)
        wanted = free_days_wanted(late, row.late_policy, row.late_days)
        if row.late_days_per_task is not None:
            wanted = min(wanted, row.late_days_per_task)
        if wanted:
            used = found.setdefault((row.course_id, row.person_id), {})
            used[row.course_task_id] = max(wanted, used.get(row.course_task_id, 0))
    return found


def set_late_bank(store: Store, course_id: int, bank: LateBank | None, *, actor_id: int | None) -> None:
    """Give each learner of a course so many late days, None: none; who stands where follows at once."""
    with store.write() as connection:
        connection.execute(
            update(CourseRow)
            .where(CourseRow.id == course_id)
            .values(
                late_days_total=None if bank is None else bank.total,
                late_days_per_task=None if bank is None else bank.per_task,
            )
        )
        tasks = list(
            connection.execute(select(CourseTaskRow.id).where(CourseTaskRow.course_id == course_id)).scalars()
        )
        attempts = select(AttemptRow.id).where(AttemptRow.course_task_id.in_(tasks))
        connection.execute(delete(LateDayUseRow).where(LateDayUseRow.attempt_id.in_(attempts)))
        for task_id in tasks:
            recompute_standings(connection, task_id)
            if bank is not None:
                break  # that one settled all tasks of the course
        told: dict[str, Any] = {} if bank is None else asdict(bank)
        audit(connection, f"course:{course_id}", "late_days_set", actor_id=actor_id, **told)


_UNJUDGED = (
    select(
        CourseTaskRow.course_id,
        AttemptRow.person_id,
        AttemptRow.course_task_id,
        SubmissionRow.submitted_at,
        func.coalesce(ExtensionRow.due_at, CourseTaskRow.due_at).label("due_at"),
        CourseTaskRow.grace_minutes,
        CourseTaskRow.late_policy,
        CourseTaskRow.late_days,
        CourseRow.late_days_per_task,
    )
    .select_from(AttemptRow)
    .join(SubmissionRow, SubmissionRow.id == AttemptRow.submission_id)
    .join(CourseTaskRow, CourseTaskRow.id == AttemptRow.course_task_id)
    .join(CourseRow, CourseRow.id == CourseTaskRow.course_id)
    .outerjoin(
        EnrolmentRow,
        and_(
            EnrolmentRow.course_id == CourseTaskRow.course_id, EnrolmentRow.person_id == AttemptRow.person_id
        ),
    )
    .outerjoin(
        ExtensionRow,
        and_(ExtensionRow.enrolment_id == EnrolmentRow.id, ExtensionRow.course_task_id == CourseTaskRow.id),
    )
    .where(
        CourseTaskRow.course_id.in_(bindparam("courses", expanding=True)),
        AttemptRow.person_id.in_(bindparam("people", expanding=True)),
        AttemptRow.lane == Lane.INTERACTIVE,
        AttemptRow.state.in_([AttemptState.QUEUED, AttemptState.RUNNING]),
        CourseTaskRow.withdrawn_at.is_(None),
        CourseTaskRow.exam_minutes.is_(None),
    )
)
