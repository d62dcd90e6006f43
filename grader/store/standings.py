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
    AttemptRow,
    CourseTaskRow,
    EnrolmentRow,
    ExtensionRow,
    GradeRow,
    OverrideRow,
    StandingRow,
    SubmissionRow,
)
from grader.store.tables.attempt import AttemptState


def recompute_standings(
    connection: Connection, course_task_id: int, person_ids: Sequence[int] | None = None
) -> None:
    """Work out again who stands where in a task; `person_ids` None: everybody."""
    terms = connection.execute(
        select(
            CourseTaskRow.course_id,
            CourseTaskRow.due_at,
            CourseTaskRow.late_policy,
            CourseTaskRow.late_loss,
        )
        .where(CourseTaskRow.id == course_task_id)
        .with_for_update(key_share=True)
    ).one()
    latest = (
        select(
            func.max(OverrideRow.id).label("id"),
            func.coalesce(AttemptRow.regrade_of, AttemptRow.id).label("root"),
        )
        .join(AttemptRow, AttemptRow.id == OverrideRow.attempt_id)
        .where(
            OverrideRow.withdrawn_at.is_(None),
            AttemptRow.course_task_id == course_task_id,
            *([] if person_ids is None else [AttemptRow.person_id.in_(person_ids)]),
        )
        .group_by(func.coalesce(AttemptRow.regrade_of, AttemptRow.id))
        .subquery()
    )
    root = func.coalesce(AttemptRow.regrade_of, AttemptRow.id)
    rows = connection.execute(
        select(
            AttemptRow.person_id,
            root.label("root"),
            AttemptRow.id,
            SubmissionRow.submitted_at,
            func.coalesce(ExtensionRow.due_at, terms.due_at).label("due_at")
            if terms.due_at is not None
            else ExtensionRow.due_at.label("due_at"),
            GradeRow.verdict,
            GradeRow.points,
            GradeRow.max_points,
            OverrideRow.verdict.label("override_verdict"),
            OverrideRow.points.label("override_points"),
        )
        .join(GradeRow, GradeRow.attempt_id == AttemptRow.id)
        .join(SubmissionRow, SubmissionRow.id == AttemptRow.submission_id)
        .outerjoin(
            EnrolmentRow,
            and_(EnrolmentRow.person_id == AttemptRow.person_id, EnrolmentRow.course_id == terms.course_id),
        )
        .outerjoin(
            ExtensionRow,
            and_(ExtensionRow.enrolment_id == EnrolmentRow.id, ExtensionRow.course_task_id == course_task_id),
        )
        .outerjoin(latest, latest.c.root == root)
        .outerjoin(OverrideRow, OverrideRow.id == latest.c.id)
        .where(
            AttemptRow.course_task_id == course_task_id,
            AttemptRow.state == AttemptState.JUDGED,
            AttemptRow.counts,
            *([] if person_ids is None else [AttemptRow.person_id.in_(person_ids)]),
        )
        .order_by(AttemptRow.person_id, root, AttemptRow.id)
    ).all()
    connection.execute(
        delete(StandingRow).where(
            StandingRow.course_task_id == course_task_id,
            *([] if person_ids is None else [StandingRow.person_id.in_(person_ids)]),
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
        connection.execute(insert(StandingRow), standings)


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
