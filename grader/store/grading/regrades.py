"""Judging again what was handed in: on a lane of its own, shown before it counts, applied by an instructor.

The first judgement stays as it was; an applied regrade takes its place in the standings. Judges nothing itself.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, case, func, select, update
from sqlalchemy.orm import aliased

from grader.errors import UsageError
from grader.model.grade import Verdict
from grader.store.attempts.attempt_endings import cancel
from grader.store.attempts.new_attempts import enqueue
from grader.store.courses.archived_courses import refuse_archived_tasks
from grader.store.courses.learners import Learners
from grader.store.courses.task_updates import TaskUpdate, set_version
from grader.store.database import Store
from grader.store.delivery.notices import notify_judged
from grader.store.events import audit
from grader.store.grading.standings import recompute_standings
from grader.store.tables import (
    AttemptRow,
    CourseTaskRow,
    DeletedContentRow,
    EventRow,
    GradeRow,
)
from grader.store.tables.attempt import AttemptState, Lane

MOST_ATTEMPTS = 5000
"""Attempts that one regrade takes; more are asked for task by task."""
_ASKED, _TRIAL = "regrade_asked", "trial"


@dataclass(frozen=True, slots=True)
class RegradeChange:
    """One line of a preview: what held before (or None), what the regrade says (None while it is not judged)."""

    attempt_id: int
    regrade_id: int
    person_id: int
    state: AttemptState
    before: tuple[Verdict, float] | None
    after: tuple[Verdict, float] | None

    @property
    def changes(self) -> bool:
        """Whether applying this would make a difference."""
        return self.after is not None and self.after != self.before


@dataclass(frozen=True, slots=True)
class RegradeBatch:
    """A regrade at a glance: how many attempts it judges again, how many of them ended, how many count by now.

    Attributes:
        num_open: still queued or running; num_judged, num_counting: with a grade, and in force.
    """

    name: str
    course_id: int
    asked_at: datetime
    num_attempts: int
    num_open: int
    num_judged: int
    num_counting: int


def queue_new_runs(
    store: Store, attempt_ids: Sequence[int], *, actor_id: int, trial: TaskUpdate | None = None
) -> str:
    """Queue these attempts to be judged again, by the version that the course sets now; returns the batch's name.

    `trial`: all are of one task, and are judged by the version that it is to be brought to; applying the regrade does.

    Raises:
        UsageError: none of them is there and ended, with its scripts still kept.
    """
    batch = secrets.token_hex(8)
    with store.write() as connection:
        rows = connection.execute(
            select(
                func.coalesce(AttemptRow.regrade_of, AttemptRow.id).label("root"),
                AttemptRow.submission_id,
                AttemptRow.person_id,
                AttemptRow.course_task_id,
                AttemptRow.digest,
                CourseTaskRow.task,
                CourseTaskRow.version,
                CourseTaskRow.profile,
                CourseTaskRow.need,
            )
            .join(CourseTaskRow, CourseTaskRow.id == AttemptRow.course_task_id)
            .outerjoin(DeletedContentRow, DeletedContentRow.attempt_id == AttemptRow.id)
            .where(
                AttemptRow.id.in_(attempt_ids),
                AttemptRow.state.in_([AttemptState.JUDGED, AttemptState.FAILED]),
                DeletedContentRow.scripts_at.is_(None),
            )
            .order_by(AttemptRow.id)
        ).all()
        if not rows:
            raise UsageError(
                "none of these attempts has ended and still has its scripts: nothing can be judged again"
            )
        refuse_archived_tasks(connection, {row.course_task_id for row in rows})
        once = {row.root: row for row in rows}
        enqueue(
            connection,
            [
                {
                    "submission_id": row.submission_id,
                    "person_id": row.person_id,
                    "course_task_id": row.course_task_id,
                    "digest": row.digest,
                    "task": row.task,
                    "task_version": row.version if trial is None else trial.version,
                    "profile": row.profile,
                    "need": row.need if trial is None else trial.need,
                    "lane": Lane.REGRADE,
                    "forced": True,
                    "regrade_of": row.root,
                    "counts": False,
                    "batch": batch,
                }
                for row in once.values()
            ],
            [actor_id] * len(once),
        )
        told = {} if trial is None else {_TRIAL: asdict(trial)}
        audit(connection, f"regrade:{batch}", _ASKED, actor_id=actor_id, number=len(once), **told)
    return batch


def trial_of(store: Store, batch: str) -> TaskUpdate | None:
    """The update of a task that a regrade is the trial of; None: it is of none."""
    with store.read() as connection:
        return _trial(connection, batch)


def preview(store: Store, batch: str) -> tuple[RegradeChange, ...]:
    """What a regrade says beside what holds now, in the order of the attempts."""
    again = aliased(AttemptRow)
    new_grade, old_grade = aliased(GradeRow), aliased(GradeRow)
    # What held before: the newest judgement of the same submission that counts and is not of this batch.
    other = aliased(AttemptRow)
    before = (
        select(func.max(other.id))
        .where(
            (other.id == again.regrade_of) | (other.regrade_of == again.regrade_of),
            other.counts,
            other.state == AttemptState.JUDGED,
            other.id < again.id,
        )
        .scalar_subquery()
    )
    with store.read() as connection:
        rows: Sequence[Sequence[Any]] = connection.execute(
            select(
                again.regrade_of,
                again.id,
                again.person_id,
                again.state,
                old_grade.verdict,
                old_grade.points,
                new_grade.verdict,
                new_grade.points,
            )
            .outerjoin(new_grade, new_grade.attempt_id == again.id)
            .outerjoin(old_grade, old_grade.attempt_id == before)
            .where(again.batch == batch)
            .order_by(again.regrade_of)
        ).all()
    return tuple(RegradeChange(*(*row[:4], _pair(row[4], row[5]), _pair(row[6], row[7]))) for row in rows)


def apply(store: Store, batch: str, *, actor_id: int) -> int:
    """Let a regrade count, as far as it is judged; returns how many attempts count now that did not before.

    Where it is the trial of an update, the update is in force with it, unless the task is at yet another version.
    """
    with store.write() as connection:
        trial = _trial(connection, batch)
        if trial is not None:
            set_version(connection, trial, actor_id=actor_id)
        rows = connection.execute(
            update(AttemptRow)
            .where(
                AttemptRow.batch == batch,
                AttemptRow.state == AttemptState.JUDGED,
                AttemptRow.counts.is_(False),
            )
            .values(counts=True)
            .returning(AttemptRow.id, AttemptRow.course_task_id, AttemptRow.person_id)
        ).all()
        refuse_archived_tasks(connection, {row.course_task_id for row in rows})
        for course_task_id in sorted({row.course_task_id for row in rows}):
            recompute_standings(
                connection,
                course_task_id,
                sorted({row.person_id for row in rows if row.course_task_id == course_task_id}),
            )
        notify_judged(connection, [row.id for row in rows])
        audit(connection, f"regrade:{batch}", "regrade_applied", actor_id=actor_id, number=len(rows))
        return len(rows)


def discard(store: Store, batch: str, *, actor_id: int) -> int:
    """Drop a regrade that was not applied: what waits is cancelled, what was judged never counts.

    Returns how many attempts it held that do not count. Applying it later is still possible for those judged.
    """
    with store.read() as connection:
        rows = connection.execute(
            select(AttemptRow.id, AttemptRow.state).where(
                AttemptRow.batch == batch, AttemptRow.counts.is_(False)
            )
        ).all()
    for row in rows:
        if row.state in (AttemptState.QUEUED, AttemptState.RUNNING):
            cancel(store, row.id, actor_id=actor_id)
    with store.write() as connection:
        audit(connection, f"regrade:{batch}", "regrade_discarded", actor_id=actor_id, number=len(rows))
    return len(rows)


def batches_of(store: Store, course_id: int, *, limit: int = 50) -> tuple[RegradeBatch, ...]:
    """The last regrades of a course, newest first."""
    with store.read() as connection:
        rows = connection.execute(
            _BATCH.where(CourseTaskRow.course_id == course_id)
            .group_by(AttemptRow.batch, CourseTaskRow.course_id)
            .order_by(func.max(AttemptRow.id).desc())
            .limit(limit)
        )
        return tuple(RegradeBatch(*row) for row in rows)


def batch_facts(store: Store, batch: str) -> RegradeBatch | None:
    """One regrade, or None."""
    with store.read() as connection:
        row = connection.execute(
            _BATCH.where(AttemptRow.batch == batch).group_by(AttemptRow.batch, CourseTaskRow.course_id)
        ).one_or_none()
    return None if row is None else RegradeBatch(*row)


def is_of(store: Store, batch: str, learners: Learners) -> bool:
    """Whether a regrade judges attempts of these learners alone, and is no trial of a task's update."""
    elsewhere = (
        select(AttemptRow.id)
        .join(CourseTaskRow, CourseTaskRow.id == AttemptRow.course_task_id)
        .where(AttemptRow.batch == batch, ~learners.among(CourseTaskRow.course_id))
        .limit(1)
    )
    with store.read() as connection:
        if _trial(connection, batch) is not None:
            return False
        return connection.execute(elsewhere).scalar_one_or_none() is None


def _trial(connection: Connection, batch: str) -> TaskUpdate | None:
    data = connection.execute(
        select(EventRow.data).where(EventRow.subject == f"regrade:{batch}", EventRow.kind == _ASKED)
    ).scalar_one_or_none()
    return None if data is None or _TRIAL not in data else TaskUpdate(**data[_TRIAL])


def _pair(verdict: Verdict | None, points: float) -> tuple[Verdict, float] | None:
    return None if verdict is None else (verdict, points)


_BATCH = (
    select(
        AttemptRow.batch,
        CourseTaskRow.course_id,
        func.min(AttemptRow.queued_at),
        func.count(),
        func.sum(case((AttemptRow.state.in_([AttemptState.QUEUED, AttemptState.RUNNING]), 1), else_=0)),
        func.sum(case((AttemptRow.state == AttemptState.JUDGED, 1), else_=0)),
        func.sum(case((AttemptRow.counts.is_(True), 1), else_=0)),
    )
    .join(CourseTaskRow, CourseTaskRow.id == AttemptRow.course_task_id)
    .where(AttemptRow.batch.is_not(None))
)
