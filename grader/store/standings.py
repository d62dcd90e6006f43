"""Standings: which attempt counts for a learner in a task, and for how much.

Written again by every operation that changes a grade, an override, a due date or a late policy, under a lock on the
task's row, so that two changes at once cannot each miss the other. Never changes what it is computed from.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from sqlalchemy import Connection, Row, delete, func, insert, select
from sqlalchemy.orm import aliased

from grader.model.grade import Verdict
from grader.store.attempt_results import judged_attempts, result_columns, result_of
from grader.store.credits import counts_for, credited, whoever_shares
from grader.store.tables import AttemptRow, CourseTaskRow, OverrideRow, StandingRow
from grader.store.tables.attempt import AttemptState


def recompute_standings(
    connection: Connection, course_task_id: int, person_ids: Sequence[int] | None = None
) -> None:
    """Work out again who stands where in a task: these people and who shares work with them; None: everybody."""
    connection.execute(
        select(CourseTaskRow.id).where(CourseTaskRow.id == course_task_id).with_for_update(key_share=True)
    ).one()
    people = None if person_ids is None else whoever_shares(connection, course_task_id, person_ids)
    theirs = credited(course_task_id, people)
    root = func.coalesce(AttemptRow.regrade_of, AttemptRow.id)
    decision = aliased(OverrideRow)
    rows = connection.execute(
        select(theirs.c.person_id, root.label("root"), AttemptRow.id, *result_columns(decision))
        .select_from(
            judged_attempts(decision).join(theirs, theirs.c.submission_id == AttemptRow.submission_id)
        )
        .where(
            # Of some people by what counts for them, not by all attempts of the task, whose index `+ 0` hides.
            AttemptRow.course_task_id == course_task_id
            if people is None
            else (AttemptRow.course_task_id + 0 == course_task_id) & counts_for(people),
            AttemptRow.state == AttemptState.JUDGED,
            AttemptRow.counts,
        )
        .order_by(theirs.c.person_id, root, AttemptRow.id)
    ).all()
    connection.execute(
        delete(StandingRow).where(
            StandingRow.course_task_id == course_task_id,
            *([] if people is None else [StandingRow.person_id.in_(people)]),
        )
    )
    standings = [
        {"course_task_id": course_task_id, "person_id": person_id, **_best(attempts)}
        for person_id, attempts in groupby(rows, key=lambda row: row.person_id)
    ]
    if standings:
        connection.execute(insert(StandingRow), standings)


def _best(attempts: Iterable[Row[*tuple[Any, ...]]]) -> dict[str, Any]:
    """Of one learner's attempts the one that counts: accepted before not, then points, then the earlier.

    One that is held counts only where there is no other, and as nothing, until an instructor has decided.
    """
    # Of a submission that was judged several times the last judgement holds.
    in_force = {row.root: row for row in attempts}.values()
    attempt_id, result = max(
        ((row.id, result_of(row)) for row in in_force),
        key=lambda one: (
            one[1].verdict is not Verdict.HELD,
            one[1].verdict is Verdict.ACCEPTED,
            one[1].points,
            -one[0],
        ),
    )
    return {
        "attempt_id": attempt_id,
        "points": result.points,
        "max_points": result.max_points,
        "verdict": result.verdict,
        "late_days": result.late_days,
        "overridden": result.decided,
    }
