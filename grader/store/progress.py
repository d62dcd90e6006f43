"""One learner's own view of a course: each task with their own due date, where they stand, what they may still hand in.

Answers as `submissions.submit` would, without handing anything in. Changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, and_, select

from grader.model.attempt_result import AttemptResult
from grader.model.grade import Verdict
from grader.store.attempt_results import read_results
from grader.store.clock import now as database_time
from grader.store.courses import AssignedTask, read_tasks
from grader.store.credits import companions, counts_for
from grader.store.database import Store
from grader.store.held_attempts import HeldTask, held_tasks
from grader.store.limits import (
    DAY,
    Caps,
    Dates,
    Limit,
    Refusal,
    counts_against_limits,
    days_late,
    group_due_date,
    group_refusal,
    refused_by_caps,
    refused_by_dates,
)
from grader.store.tables import AttemptRow, CourseRow, EnrolmentRow, ExtensionRow, StandingRow
from grader.store.tables.attempt import AttemptState, Lane
from grader.store.tables.person import Role


@dataclass(frozen=True, slots=True)
class OwnStanding:
    """The attempt that counts for a learner in a task, and for how much."""

    attempt_id: int
    result: AttemptResult


@dataclass(frozen=True, slots=True)
class OwnTask:
    """A task as one learner has it.

    Attributes:
        task: as the course sets it.
        due_at: this learner's own date; extended: it is not everybody's.
        standing: what counts so far; None: nothing was judged, or it is hidden.
        hidden_until: they are not told before then how they did; None: they are.
        unfinished: attempts that wait or run, oldest first.
        num_attempts: handed in so far; used_today, used: of those that count against the limits.
        late_days: days begun after the due date, now.
        held: that an attempt waits for an instructor to decide; None: none does, or it is hidden.
        refusal: why nothing more is taken just now; None: it is.
    """

    task: AssignedTask
    due_at: datetime | None
    extended: bool
    standing: OwnStanding | None
    hidden_until: datetime | None
    unfinished: tuple[int, ...]
    num_attempts: int
    used_today: int
    used: int
    late_days: int
    held: HeldTask | None
    refusal: Refusal | None

    @property
    def accepted(self) -> bool:
        """Whether it is known to be done."""
        return self.standing is not None and self.standing.result.verdict is Verdict.ACCEPTED


def progress(
    store: Store, course_id: int, person_id: int, *, with_drafts: bool = False
) -> tuple[OwnTask, ...]:
    """A course's tasks in their order, as this person has them; who only looks on may hand nothing in.

    `with_drafts`: also those that learners do not know of yet.
    """
    with store.read() as connection:
        tasks = [
            task
            for task in read_tasks(connection, course_id)
            if task.offered or (with_drafts and not task.withdrawn)
        ]
        ids = [task.id for task in tasks]
        now = database_time(connection)
        closed = connection.execute(
            select(CourseRow.closed_at).where(CourseRow.id == course_id)
        ).scalar_one_or_none()
        role = connection.execute(
            select(EnrolmentRow.role).where(
                EnrolmentRow.course_id == course_id, EnrolmentRow.person_id == person_id
            )
        ).scalar_one_or_none()
        together = companions(connection, [(person_id, one) for one in ids])
        had = {
            one: (_extended(connection, course_id, one), _attempts(connection, ids, one))
            for one in {person_id}.union(*together.values())
        }
        attempts = had[person_id][1]
        standings = _standings(connection, ids, person_id)
        held = held_tasks(connection, ids, person_id)
    found = []
    for task in tasks:
        terms, own = task.terms, attempts.get(task.id, [])
        group = [had[one] for one in (person_id, *together.get((person_id, task.id), ()))]
        dues = [moved.get(task.id, terms.due_at) for moved, _ in group]
        due = group_due_date(dues)
        teaches = role is Role.INSTRUCTOR
        hidden = due if terms.hidden_until_due and not teaches and due is not None and now <= due else None
        counted = [one.queued_at for one in own if one.counts]
        unfinished = tuple(one.id for one in reversed(own) if one.unfinished)
        refusal = None
        if role is None:
            refusal = Refusal(Limit.NOT_ENROLLED)
        elif not teaches:
            refusal = Refusal(Limit.COURSE_CLOSED) if closed is not None else _refusal(task, now, dues, group)
        found.append(
            OwnTask(
                task=task,
                due_at=due,
                extended=due != terms.due_at,
                standing=standings.get(task.id) if hidden is None else None,
                hidden_until=hidden,
                unfinished=unfinished,
                num_attempts=len(own),
                used_today=sum(at > now - DAY for at in counted),
                used=len(counted),
                late_days=days_late(now, due),
                held=held.get(task.id) if hidden is None else None,
                refusal=refusal,
            )
        )
    return tuple(found)


def _refusal(
    task: AssignedTask,
    now: datetime,
    dues: Sequence[datetime | None],
    group: Sequence[tuple[dict[int, datetime], dict[int, list[_Attempt]]]],
) -> Refusal | None:
    """What stands in the way of those who hand in together, each with their date and their attempts."""
    terms = task.terms
    caps = Caps(terms.max_per_day, terms.max_total, terms.max_concurrent)
    refusals = []
    for due, (_, attempts) in zip(dues, group, strict=True):
        own = attempts.get(task.id, [])
        refusals.append(
            refused_by_dates(now, Dates(terms.opens_at, due, terms.late_policy, terms.late_days))
            or refused_by_caps(
                now, caps, [one.queued_at for one in own if one.counts], sum(one.unfinished for one in own)
            )
        )
    return group_refusal(refusals)


@dataclass(frozen=True, slots=True)
class _Attempt:
    """What limits and pages need of one attempt; `counts`: against the learner's limits."""

    id: int
    queued_at: datetime
    unfinished: bool
    counts: bool


def _extended(connection: Connection, course_id: int, person_id: int) -> dict[int, datetime]:
    """A person's own due dates, by task of the course."""
    rows = connection.execute(
        select(ExtensionRow.course_task_id, ExtensionRow.due_at)
        .join(EnrolmentRow, EnrolmentRow.id == ExtensionRow.enrolment_id)
        .where(and_(EnrolmentRow.course_id == course_id, EnrolmentRow.person_id == person_id))
    )
    return {row.course_task_id: row.due_at for row in rows}


def _attempts(connection: Connection, ids: Sequence[int], person_id: int) -> dict[int, list[_Attempt]]:
    """The attempts that count for a person at each of these tasks of the course, the latest first; regrades aside."""
    rows = connection.execute(
        select(
            AttemptRow.course_task_id,
            AttemptRow.id,
            AttemptRow.queued_at,
            AttemptRow.state,
            AttemptRow.claimed_at,
            AttemptRow.cached_from,
        )
        .where(
            counts_for([person_id]),
            AttemptRow.course_task_id.in_(ids),
            AttemptRow.lane == Lane.INTERACTIVE,
        )
        .order_by(AttemptRow.id.desc())
    )
    found: dict[int, list[_Attempt]] = {}
    for row in rows:
        unfinished = row.state in (AttemptState.QUEUED, AttemptState.RUNNING)
        counts = counts_against_limits(row.state, row.claimed_at, row.cached_from)
        found.setdefault(row.course_task_id, []).append(_Attempt(row.id, row.queued_at, unfinished, counts))
    return found


def _standings(connection: Connection, ids: Sequence[int], person_id: int) -> dict[int, OwnStanding]:
    """What counts for a person in these tasks of the course."""
    rows = connection.execute(
        select(StandingRow.course_task_id, StandingRow.attempt_id).where(
            StandingRow.person_id == person_id, StandingRow.course_task_id.in_(ids)
        )
    )
    counting = {row.course_task_id: row.attempt_id for row in rows}
    results = read_results(connection, counting.values())
    return {task_id: OwnStanding(one, results[one]) for task_id, one in counting.items()}
