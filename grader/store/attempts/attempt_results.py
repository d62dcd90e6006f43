"""What attempts count as: their grades, with lateness, an instructor's decision and a hold. Changes nothing."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache
from typing import Any

from sqlalchemy import ColumnElement, Connection, FromClause, and_, case, func, select
from sqlalchemy.orm import aliased

from grader.model.attempt_result import AttemptResult
from grader.model.grade import SCHEMA, Verdict
from grader.store.attempts.limits import days_late, free_days_wanted, late_factor
from grader.store.database import Store
from grader.store.grading.credits import latest_due_at
from grader.store.tables import (
    AttemptRow,
    CommentRow,
    CourseTaskRow,
    EnrolmentRow,
    ExtensionRow,
    GradeRow,
    LateDayUseRow,
    OverrideRow,
    SubmissionRow,
)

_MOST_IDS = 5000
_SCHEMA_WITHIN = 24
_SCHEMA = re.compile(r'"schema": ?(\d+)\b')


# What comments change, by the attempt that was handed in: they outlive its regrades, as overrides do.
_remarked = aliased(AttemptRow)
_REMARKS = (
    select(
        func.coalesce(_remarked.regrade_of, _remarked.id).label("root"),
        func.sum(CommentRow.points).label("points"),
    )
    .join(_remarked, _remarked.id == CommentRow.attempt_id)
    .where(CommentRow.points.is_not(None), CommentRow.withdrawn_at.is_(None))
    .group_by(func.coalesce(_remarked.regrade_of, _remarked.id))
    .subquery("remarks")
)


_decision: Any = aliased(OverrideRow)


def _columns() -> tuple[ColumnElement[Any], ...]:
    own, shared = func.coalesce(ExtensionRow.due_at, CourseTaskRow.due_at), latest_due_at()
    return (
        GradeRow.verdict.label("verdict"),
        GradeRow.points.label("points"),
        GradeRow.max_points.label("max_points"),
        # The schema is the first that a grade's document says; the rest of it is long.
        func.substr(GradeRow.document, 1, _SCHEMA_WITHIN).label("document_head"),
        GradeRow.created_at.label("judged_at"),
        SubmissionRow.submitted_at.label("submitted_at"),
        # Of a group the latest date of its members: what counts for all of them is late for all of them, or for none.
        # An exam is over or not: what it took is not late.
        case((CourseTaskRow.exam_minutes.is_not(None), None), (shared > own, shared), else_=own).label(
            "due_at"
        ),
        CourseTaskRow.grace_minutes.label("grace_minutes"),
        CourseTaskRow.late_policy.label("late_policy"),
        CourseTaskRow.late_loss.label("late_loss"),
        CourseTaskRow.late_days.label("most_late_days"),
        func.coalesce(LateDayUseRow.days, 0).label("free_days"),
        _decision.verdict.label("decided_verdict"),
        _decision.points.label("decided_points"),
        func.coalesce(_REMARKS.c.points, 0.0).label("comment_points"),
    )


RESULT_COLUMNS = _columns()
"""What `result_of` needs of an attempt, the last of a row, in a selection from `JUDGED_ATTEMPTS`."""


def _joined() -> FromClause:
    judged = aliased(AttemptRow)
    latest = (
        select(
            func.max(OverrideRow.id).label("id"),
            func.coalesce(judged.regrade_of, judged.id).label("root"),
        )
        .join(judged, judged.id == OverrideRow.attempt_id)
        .where(OverrideRow.withdrawn_at.is_(None))
        .group_by(func.coalesce(judged.regrade_of, judged.id))
        .subquery()
    )
    table: Any = AttemptRow.__table__
    joined: FromClause = (
        table.join(GradeRow, GradeRow.attempt_id == AttemptRow.id)
        .join(SubmissionRow, SubmissionRow.id == AttemptRow.submission_id)
        .join(CourseTaskRow, CourseTaskRow.id == AttemptRow.course_task_id)
        .outerjoin(
            EnrolmentRow,
            and_(
                EnrolmentRow.person_id == AttemptRow.person_id,
                EnrolmentRow.course_id == CourseTaskRow.course_id,
            ),
        )
        .outerjoin(
            ExtensionRow,
            and_(
                ExtensionRow.enrolment_id == EnrolmentRow.id,
                ExtensionRow.course_task_id == AttemptRow.course_task_id,
            ),
        )
        .outerjoin(
            LateDayUseRow,
            and_(
                LateDayUseRow.attempt_id == func.coalesce(AttemptRow.regrade_of, AttemptRow.id),
                LateDayUseRow.person_id == AttemptRow.person_id,
            ),
        )
        .outerjoin(latest, latest.c.root == func.coalesce(AttemptRow.regrade_of, AttemptRow.id))
        .outerjoin(_decision, _decision.id == latest.c.id)
        .outerjoin(_REMARKS, _REMARKS.c.root == func.coalesce(AttemptRow.regrade_of, AttemptRow.id))
    )
    return joined


# Made once: SQLAlchemy takes milliseconds for what is built and compiled anew in each request.
JUDGED_ATTEMPTS = _joined()
"""Attempts with a grade, joined with all that decides what they count as; the latest decision of each, if any."""


def result_of(row: Any, free_days: int | None = None) -> AttemptResult:
    """What an attempt counts as, from the columns above, in which a row ends.

    `free_days`: late days that it may take; None: those that it was settled to take.
    """
    # All at once: asking a row for each by name takes longer than the rest, and a gradebook has thousands of rows.
    (
        judged_verdict,
        judged_points,
        max_points,
        document_head,
        judged_at,
        submitted_at,
        due_at,
        grace_minutes,
        policy,
        loss,
        most_late_days,
        settled,
        decided_verdict,
        decided_points,
        comment_points,
    ) = row[-15:]
    decided = decided_verdict is not None
    verdict = decided_verdict if decided else judged_verdict
    # Comments change what was judged, within what there is; lateness costs a share of the rest. What an instructor
    # gives is given: comments and lateness were before their eyes.
    late = days_late(submitted_at, due_at, grace_minutes)
    free, held = 0, verdict is Verdict.HELD
    if late and not decided and not held:
        wanted = free_days_wanted(late, policy, most_late_days)
        free = min(wanted, settled if free_days is None else free_days)
    kept = late_factor(policy, loss, late - free)
    remarked = min(max(judged_points + comment_points, 0.0), max_points)
    points = decided_points if decided else round(remarked * kept, 2)
    return AttemptResult(
        verdict=verdict,
        points=0.0 if held else points,
        max_points=max_points,
        judged_verdict=judged_verdict,
        judged_points=judged_points,
        late_days=late,
        late_loss=round(1.0 - kept, 4),
        free_days=free,
        decided=decided,
        held_since=judged_at if held else None,
        earlier_scale=_earlier_scale(document_head),
        comment_points=round(remarked - judged_points, 2),
    )


@lru_cache(maxsize=64)
def _earlier_scale(document_head: str) -> bool:
    schema = _SCHEMA.search(document_head)
    return schema is not None and int(schema[1]) < SCHEMA


def results_of(store: Store, attempt_ids: Collection[int]) -> dict[int, AttemptResult]:
    """What each of these attempts counts as; those without a grade are not in it."""
    ids = list(attempt_ids)
    with store.read() as connection:
        # Databases limit how many values one statement may hold.
        parts = (ids[start : start + _MOST_IDS] for start in range(0, len(ids), _MOST_IDS))
        return {
            attempt_id: one for part in parts for attempt_id, one in read_results(connection, part).items()
        }


def read_results(connection: Connection, attempt_ids: Collection[int]) -> dict[int, AttemptResult]:
    """The same, within a transaction of the caller's."""
    statement = (
        select(AttemptRow.id, *RESULT_COLUMNS)
        .select_from(JUDGED_ATTEMPTS)
        .where(AttemptRow.id.in_(attempt_ids))
    )
    return {row.id: result_of(row) for row in connection.execute(statement)}
