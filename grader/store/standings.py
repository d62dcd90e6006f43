"""Standings: which attempt counts for a learner in a task, and for how much.

Written again by every operation that changes a grade, an override, a due date, a late policy or a course's late days,
under a lock on the course's row, so that two changes at once cannot each miss the other. Never changes what it is
computed from.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from sqlalchemy import Connection, Row, delete, func, insert, select
from sqlalchemy.orm import aliased

from grader.model.attempt_result import AttemptResult
from grader.model.grade import Verdict
from grader.store.attempt_results import judged_attempts, result_columns, result_of
from grader.store.limits import LateBank
from grader.store.lti_scores import note_scores
from grader.store.tables import (
    AttemptRow,
    CourseRow,
    CourseTaskRow,
    LateDayUseRow,
    OverrideRow,
    StandingRow,
)
from grader.store.tables.attempt import AttemptState
from grader.store.webhook_events import tell_grades


def recompute_standings(
    connection: Connection, course_task_id: int, person_ids: Sequence[int] | None = None
) -> None:
    """Work out again who stands where in a task; `person_ids` None: everybody.

    Where the course gives late days, in all of its tasks: what one uses, others lack.
    """
    course = connection.execute(
        select(CourseRow.id, CourseRow.late_days_total, CourseRow.late_days_per_task)
        .join(CourseTaskRow, CourseTaskRow.course_id == CourseRow.id)
        .where(CourseTaskRow.id == course_task_id)
        .with_for_update(key_share=True, of=CourseRow)
    ).one()
    bank, tasks = None, [course_task_id]
    if course.late_days_total is not None:
        bank = LateBank(course.late_days_total, course.late_days_per_task)
        tasks = list(
            connection.execute(select(CourseTaskRow.id).where(CourseTaskRow.course_id == course.id)).scalars()
        )
    settled = [
        _settle(person_id, attempts, bank)
        for person_id, attempts in groupby(
            _judged(connection, tasks, person_ids), key=lambda row: int(row.person_id)
        )
    ]
    theirs = (
        StandingRow.course_task_id.in_(tasks),
        *([] if person_ids is None else [StandingRow.person_id.in_(person_ids)]),
    )
    before = {tuple(row) for row in connection.execute(_COUNTS.where(*theirs))}
    connection.execute(delete(StandingRow).where(*theirs))
    standings = [one.standing() for learner in settled for one in learner.counting.values()]
    if standings:
        connection.execute(insert(StandingRow), standings)
    after = {tuple(row[name] for name in _COUNTED) for row in standings}
    changed = {(row[0], row[1]) for row in before ^ after}
    for task_id in sorted({task_id for task_id, _ in changed}):
        tell_grades(connection, task_id, {person for task, person in changed if task == task_id})
    for task_id in tasks:
        note_scores(connection, task_id, person_ids)
    if bank is None:
        return
    again = select(AttemptRow.id).where(AttemptRow.course_task_id.in_(tasks))
    connection.execute(
        delete(LateDayUseRow).where(
            LateDayUseRow.attempt_id.in_(again),
            *([] if person_ids is None else [LateDayUseRow.person_id.in_(person_ids)]),
        )
    )
    uses = [
        {"attempt_id": root, "person_id": learner.person_id, "days": days}
        for learner in settled
        for root, days in learner.uses.items()
    ]
    if uses:
        connection.execute(insert(LateDayUseRow), uses)


@dataclass(frozen=True, slots=True)
class _Counting:
    """An attempt that counts; `row`: of the judgement in force."""

    row: Row[*tuple[Any, ...]]
    result: AttemptResult

    @property
    def rank(self) -> tuple[bool, bool, float]:
        """Accepted before not, then points. One that is held counts only where there is no other, as nothing."""
        verdict = self.result.verdict
        return verdict is not Verdict.HELD, verdict is Verdict.ACCEPTED, self.result.points

    def standing(self) -> dict[str, Any]:
        return {
            "course_task_id": self.row.course_task_id,
            "person_id": self.row.person_id,
            "attempt_id": self.row.id,
            "points": self.result.points,
            "max_points": self.result.max_points,
            "verdict": self.result.verdict,
            "late_days": self.result.late_days,
            "overridden": self.result.decided,
        }


@dataclass(frozen=True, slots=True)
class _Settled:
    """What counts for one learner, by task; and the late days that each attempt takes, by the one handed in."""

    person_id: int
    counting: dict[int, _Counting] = field(default_factory=dict)
    uses: dict[int, int] = field(default_factory=dict)


def _settle(person_id: int, attempts: Iterable[Row[*tuple[Any, ...]]], bank: LateBank | None) -> _Settled:
    """One learner's attempts in the order in which they were handed in: of equal ones the earlier counts.

    Each finds the late days that what counted elsewhere by then has left, so that nobody loses a day that they were
    told was used.
    """
    settled = _Settled(person_id)
    # Of a submission that was judged several times the last judgement holds.
    for root, row in {row.root: row for row in attempts}.items():
        free = 0
        if bank is not None and not row.withdrawn:
            free = bank.available(
                sum(
                    one.result.free_days
                    for task_id, one in settled.counting.items()
                    if task_id != row.course_task_id
                )
            )
        new = _Counting(row, result_of(row, free))
        if new.result.free_days:
            settled.uses[root] = new.result.free_days
        before = settled.counting.get(row.course_task_id)
        if before is None or new.rank > before.rank:
            settled.counting[row.course_task_id] = new
    return settled


def _judged(
    connection: Connection, tasks: Sequence[int], person_ids: Sequence[int] | None
) -> Sequence[Row[*tuple[Any, ...]]]:
    """Judged attempts that count, learner by learner, in the order in which they were handed in."""
    root = func.coalesce(AttemptRow.regrade_of, AttemptRow.id)
    decision = aliased(OverrideRow)
    return connection.execute(
        select(
            AttemptRow.person_id,
            AttemptRow.course_task_id,
            root.label("root"),
            AttemptRow.id,
            CourseTaskRow.withdrawn_at.is_not(None).label("withdrawn"),
            *result_columns(decision),
        )
        .select_from(judged_attempts(decision))
        .where(
            AttemptRow.course_task_id.in_(tasks),
            AttemptRow.state == AttemptState.JUDGED,
            AttemptRow.counts,
            *([] if person_ids is None else [AttemptRow.person_id.in_(person_ids)]),
        )
        .order_by(AttemptRow.person_id, root, AttemptRow.id)
    ).all()


# Another attempt that counts for as much changes no grade.
_COUNTED = ("course_task_id", "person_id", "verdict", "points", "max_points")
_COUNTS = select(*(getattr(StandingRow, name) for name in _COUNTED))
