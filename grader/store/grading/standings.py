"""Standings: which attempt counts for a learner in a task, and for how much.

Written again by every operation that changes a grade, an override, a due date, a late policy or a course's late days,
under a lock on the course's row, so that two changes at once cannot each miss the other. Never changes what it is
computed from.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from sqlalchemy import Connection, Row, delete, func, insert, select

from grader.model.attempt_result import AttemptResult
from grader.model.grade import Verdict
from grader.store.attempts.attempt_results import JUDGED_ATTEMPTS, RESULT_COLUMNS, result_of
from grader.store.attempts.limits import LateBank
from grader.store.delivery.webhook_events import tell_grades
from grader.store.grading.credits import anything_shared, counts_for, credited, whoever_shares
from grader.store.lti.lti_scores import note_scores
from grader.store.tables import (
    AttemptRow,
    CourseRow,
    CourseTaskRow,
    LateDayUseRow,
    StandingRow,
)
from grader.store.tables.attempt import AttemptState


def recompute_standings(
    connection: Connection, course_task_id: int, person_ids: Collection[int] | None = None
) -> None:
    """Work out again who stands where in a task: these people and who shares work with them; None: everybody.

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
        # What the late days of one change reaches everybody who ever shared work with whoever shared it.
        people = None if person_ids is None or anything_shared(connection, tasks) else frozenset(person_ids)
    else:
        people = None if person_ids is None else whoever_shares(connection, course_task_id, person_ids)
    settled = _settle(_judged(connection, tasks, people), bank)
    _write(connection, tasks, people, settled)
    if bank is not None:
        _write_uses(connection, tasks, people, settled)


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

    def standing(self, person_id: int) -> dict[str, Any]:
        return {
            "course_task_id": self.row.course_task_id,
            "person_id": person_id,
            "attempt_id": self.row.id,
            "points": self.result.points,
            "max_points": self.result.max_points,
            "verdict": self.result.verdict,
            "late_days": self.result.late_days,
            "overridden": self.result.decided,
        }


@dataclass(frozen=True, slots=True)
class _Settled:
    """What counts, by person and by task; and the late days that attempts take, by sender and by the one handed in."""

    counting: dict[int, dict[int, _Counting]] = field(default_factory=dict)
    uses: dict[tuple[int, int], int] = field(default_factory=dict)

    def used_elsewhere(self, sender: int, course_task_id: int) -> int:
        """Late days that this sender's attempts that count for them take in other tasks."""
        return sum(
            one.result.free_days
            for task_id, one in self.counting.get(sender, {}).items()
            if task_id != course_task_id and one.row.sender == sender
        )

    def count(self, person_id: int, new: _Counting) -> None:
        """Let an attempt count for somebody, unless an earlier one is as good."""
        theirs = self.counting.setdefault(person_id, {})
        before = theirs.get(new.row.course_task_id)
        if before is None or new.rank > before.rank:
            theirs[new.row.course_task_id] = new


def _settle(judged: Iterable[Row[*tuple[Any, ...]]], bank: LateBank | None) -> _Settled:
    """Attempts in the order in which they were handed in, each for everybody for whom it counts.

    Each finds the late days of its sender that what counted elsewhere by then has left, so that nobody loses a day that
    they were told was used.
    """
    settled = _Settled()
    for root, rows in groupby(judged, key=lambda row: int(row.root)):
        shares = list(rows)
        # Of a submission that was judged several times the last judgement holds.
        row = shares[-1]
        free = 0
        if bank is not None and not row.withdrawn:
            free = bank.available(settled.used_elsewhere(row.sender, row.course_task_id))
        new = _Counting(row, result_of(row, free))
        if new.result.free_days:
            settled.uses[row.sender, root] = new.result.free_days
        for person_id in {int(one.person_id) for one in shares}:
            settled.count(person_id, new)
    return settled


def _judged(
    connection: Connection, tasks: Sequence[int], people: Collection[int] | None
) -> Sequence[Row[*tuple[Any, ...]]]:
    """Judged attempts that count, in the order in which they were handed in, once for each for whom they do."""
    root = func.coalesce(AttemptRow.regrade_of, AttemptRow.id)
    theirs = credited(tasks, people)
    return connection.execute(
        select(
            theirs.c.person_id,
            AttemptRow.person_id.label("sender"),
            AttemptRow.course_task_id,
            root.label("root"),
            AttemptRow.id,
            CourseTaskRow.withdrawn_at.is_not(None).label("withdrawn"),
            *RESULT_COLUMNS,
        )
        .select_from(JUDGED_ATTEMPTS.join(theirs, theirs.c.submission_id == AttemptRow.submission_id))
        .where(
            # Of some people by what counts for them, not by all attempts of the tasks, whose index `+ 0` hides.
            AttemptRow.course_task_id.in_(tasks)
            if people is None
            else (AttemptRow.course_task_id + 0).in_(tasks) & counts_for(people),
            AttemptRow.state == AttemptState.JUDGED,
            AttemptRow.counts,
        )
        .order_by(root, AttemptRow.id)
    ).all()


def _write(
    connection: Connection, tasks: Sequence[int], people: Collection[int] | None, settled: _Settled
) -> None:
    """Keep the standings, and tell of those that changed."""
    theirs = (
        StandingRow.course_task_id.in_(tasks),
        *([] if people is None else [StandingRow.person_id.in_(people)]),
    )
    before = {tuple(row) for row in connection.execute(_COUNTS.where(*theirs))}
    connection.execute(delete(StandingRow).where(*theirs))
    standings = [
        one.standing(person_id)
        for person_id, counting in settled.counting.items()
        for one in counting.values()
    ]
    if standings:
        connection.execute(insert(StandingRow), standings)
    after = {tuple(row[name] for name in _COUNTED) for row in standings}
    changed = {(row[0], row[1]) for row in before ^ after}
    for task_id in sorted({task_id for task_id, _ in changed}):
        tell_grades(connection, task_id, {person for task, person in changed if task == task_id})
    for task_id in tasks:
        note_scores(connection, task_id, people)


def _write_uses(
    connection: Connection, tasks: Sequence[int], people: Collection[int] | None, settled: _Settled
) -> None:
    """Keep which attempt takes how many late days of its sender."""
    attempts = select(AttemptRow.id).where(AttemptRow.course_task_id.in_(tasks))
    connection.execute(
        delete(LateDayUseRow).where(
            LateDayUseRow.attempt_id.in_(attempts),
            *([] if people is None else [LateDayUseRow.person_id.in_(people)]),
        )
    )
    uses = [
        {"attempt_id": root, "person_id": sender, "days": days}
        for (sender, root), days in settled.uses.items()
    ]
    if uses:
        connection.execute(insert(LateDayUseRow), uses)


# Another attempt that counts for as much changes no grade.
_COUNTED = ("course_task_id", "person_id", "verdict", "points", "max_points")
_COUNTS = select(*(getattr(StandingRow, name) for name in _COUNTED))
