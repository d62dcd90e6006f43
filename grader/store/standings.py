"""Standings: which attempt counts for a learner in a task, and for how much.

Written again by every operation that changes a grade, an override, a due date or a late policy, under a lock on the
task's row, so that two changes at once cannot each miss the other. Never changes what it is computed from.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from sqlalchemy import Connection, Row, and_, delete, func, insert, select

from grader.model.grade import Verdict
from grader.store.limits import days_late, late_factor
from grader.store.tables import (
    Attempt,
    CourseTask,
    Enrolment,
    Extension,
    GradeRecord,
    Override,
    Standing,
    SubmissionRow,
)
from grader.store.tables.attempt import AttemptState


def restate(connection: Connection, course_task_id: int, person_ids: Sequence[int] | None = None) -> None:
    """Work out again who stands where in a task; `person_ids` None: everybody."""
    terms = connection.execute(
        select(
            CourseTask.course_id,
            CourseTask.due_at,
            CourseTask.late_policy,
            CourseTask.late_loss,
        )
        .where(CourseTask.id == course_task_id)
        .with_for_update(key_share=True)
    ).one()
    latest = (
        select(func.max(Override.id).label("id"), func.coalesce(Attempt.regrade_of, Attempt.id).label("root"))
        .join(Attempt, Attempt.id == Override.attempt_id)
        .where(
            Override.withdrawn_at.is_(None),
            Attempt.course_task_id == course_task_id,
            *([] if person_ids is None else [Attempt.person_id.in_(person_ids)]),
        )
        .group_by(func.coalesce(Attempt.regrade_of, Attempt.id))
        .subquery()
    )
    root = func.coalesce(Attempt.regrade_of, Attempt.id)
    rows = connection.execute(
        select(
            Attempt.person_id,
            root.label("root"),
            Attempt.id,
            SubmissionRow.submitted_at,
            func.coalesce(Extension.due_at, terms.due_at).label("due_at")
            if terms.due_at is not None
            else Extension.due_at.label("due_at"),
            GradeRecord.verdict,
            GradeRecord.points,
            GradeRecord.max_points,
            Override.verdict.label("override_verdict"),
            Override.points.label("override_points"),
        )
        .join(GradeRecord, GradeRecord.attempt_id == Attempt.id)
        .join(SubmissionRow, SubmissionRow.id == Attempt.submission_id)
        .outerjoin(
            Enrolment, and_(Enrolment.person_id == Attempt.person_id, Enrolment.course_id == terms.course_id)
        )
        .outerjoin(
            Extension,
            and_(Extension.enrolment_id == Enrolment.id, Extension.course_task_id == course_task_id),
        )
        .outerjoin(latest, latest.c.root == root)
        .outerjoin(Override, Override.id == latest.c.id)
        .where(
            Attempt.course_task_id == course_task_id,
            Attempt.state == AttemptState.JUDGED,
            Attempt.counts,
            *([] if person_ids is None else [Attempt.person_id.in_(person_ids)]),
        )
        .order_by(Attempt.person_id, root, Attempt.id)
    ).all()
    connection.execute(
        delete(Standing).where(
            Standing.course_task_id == course_task_id,
            *([] if person_ids is None else [Standing.person_id.in_(person_ids)]),
        )
    )
    standings = [
        {
            "course_task_id": course_task_id,
            "person_id": person_id,
            **_best(attempts, lambda late: late_factor(terms.late_policy, terms.late_loss, late)),
        }
        for person_id, attempts in groupby(rows, key=lambda row: row.person_id)
    ]
    if standings:
        connection.execute(insert(Standing), standings)


def _best(attempts: Iterable[Row[*tuple[Any, ...]]], factor: Any) -> dict[str, Any]:
    """Of one learner's attempts the one that counts: accepted before not, then points, then the earlier."""
    # Of a submission that was judged several times the last judgement holds.
    in_force = {row.root: row for row in attempts}.values()
    counted = [_counted(row, factor) for row in in_force]
    return max(
        counted,
        key=lambda one: (one["verdict"] is Verdict.ACCEPTED, one["points"], -one["attempt_id"]),
    )


def _counted(row: Row[*tuple[Any, ...]], factor: Any) -> dict[str, Any]:
    late = days_late(row.submitted_at, row.due_at)
    overridden = row.override_verdict is not None
    return {
        "attempt_id": row.id,
        # What an instructor gives is given: lateness was before their eyes.
        "points": row.override_points if overridden else row.points * factor(late),
        "max_points": row.max_points,
        "verdict": row.override_verdict if overridden else row.verdict,
        "late_days": late,
        "overridden": overridden,
    }
