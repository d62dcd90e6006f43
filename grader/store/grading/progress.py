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
from grader.store.attempts.attempt_results import read_results
from grader.store.attempts.limits import (
    DAY,
    UNRELEASED,
    Caps,
    Dates,
    ExamTime,
    LateBank,
    Limit,
    Refusal,
    counts_against_limits,
    days_late,
    free_days_wanted,
    group_due_date,
    refused_by_caps,
    refused_by_dates,
)
from grader.store.clock import now as database_time
from grader.store.courses.courses import AssignedTask, read_tasks
from grader.store.courses.extensions import Extension
from grader.store.courses.late_days import days_in_use
from grader.store.database import Store
from grader.store.grading.credits import companions, counts_for
from grader.store.grading.held_attempts import HeldTask, held_tasks
from grader.store.tables import (
    AttemptRow,
    CourseRow,
    EnrolmentRow,
    ExamSittingRow,
    ExtensionRow,
    StandingRow,
)
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
        due_at: this learner's own date; extended: it is not everybody's; caps: how many attempts they have.
        exam: their time, where it is an exam.
        standing: what counts so far; None: nothing was judged, or it is hidden.
        hidden_until: they are not told before then how they did; None: they are.
        unfinished: attempts that wait or run, oldest first.
        num_attempts: handed in so far; used_today, used: of those that count against the limits.
        late_days: days begun after the due date, now; free_days: late days that handing in now would take.
        used_free_days: late days that what counts has taken.
        held: that an attempt waits for an instructor to decide; None: none does, or it is hidden.
        refusal: why nothing more is taken just now; None: it is.
    """

    task: AssignedTask
    due_at: datetime | None
    extended: bool
    caps: Caps
    exam: ExamTime | None
    standing: OwnStanding | None
    hidden_until: datetime | None
    unfinished: tuple[int, ...]
    num_attempts: int
    used_today: int
    used: int
    late_days: int
    free_days: int
    used_free_days: int
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
        course = connection.execute(_COURSE.where(CourseRow.id == course_id)).one_or_none()
        role = connection.execute(
            select(EnrolmentRow.role).where(
                EnrolmentRow.course_id == course_id, EnrolmentRow.person_id == person_id
            )
        ).scalar_one_or_none()
        bank = None
        if course is not None and course.late_days_total is not None:
            bank = LateBank(course.late_days_total, course.late_days_per_task)
        in_use = days_in_use(connection, [course_id], [person_id]) if bank is not None else {}
        begun = _begun(connection, ids, person_id)
        together = companions(connection, [(person_id, one) for one in ids])
        members = {
            one: _Member(_extended(connection, course_id, one), _attempts(connection, ids, one))
            for one in {person_id}.union(*together.values())
        }
        me = members[person_id]
        standings = _standings(connection, ids, person_id)
        held = held_tasks(connection, ids, person_id)
    found = []
    for task in tasks:
        terms, own = task.terms, me.attempts.get(task.id, [])
        group = [members[one] for one in (person_id, *together.get((person_id, task.id), ()))]
        given, due = me.given(task), group_due_date([one.due_at(task) for one in group])
        teaches = role not in (Role.LEARNER, None)
        exam = None
        if terms.exam_minutes is not None and due is not None:
            exam = ExamTime(terms.exam_minutes, given.extra_minutes or 0, begun.get(task.id), due)
        hidden = None if teaches else _hidden_until(task, due, now)
        late = 0 if exam is not None else days_late(now, due, terms.grace_minutes)
        free, used = 0, in_use.get((course_id, person_id), {})
        if bank is not None:
            free = bank.available(sum(days for task_id, days in used.items() if task_id != task.id))
        counted = [one.queued_at for one in own if one.counts]
        unfinished = tuple(one.id for one in reversed(own) if one.unfinished)
        refusal = None
        if role in (Role.OBSERVER, None):
            refusal = Refusal(Limit.NOT_ENROLLED)
        elif course is not None and course.archived_at is not None:
            refusal = Refusal(Limit.COURSE_ARCHIVED)
        elif course is not None and course.closed_at is not None and not teaches:
            refusal = Refusal(Limit.COURSE_CLOSED)
        elif not teaches:
            dates = Dates(
                *(terms.opens_at, due, terms.late_policy, terms.late_days, terms.grace_minutes, free, exam)
            )
            refusal = refused_by_dates(now, dates) or next(
                filter(None, (one.refused_by_caps(now, task) for one in group)), None
            )
        found.append(
            OwnTask(
                task=task,
                due_at=due,
                extended=due != terms.due_at,
                caps=me.caps(task),
                exam=exam,
                standing=standings.get(task.id) if hidden is None else None,
                hidden_until=hidden,
                unfinished=unfinished,
                num_attempts=len(own),
                used_today=sum(at > now - DAY for at in counted),
                used=len(counted),
                late_days=late,
                free_days=min(free_days_wanted(late, terms.late_policy, terms.late_days), free),
                used_free_days=used.get(task.id, 0),
                held=held.get(task.id) if hidden is None else None,
                refusal=refusal,
            )
        )
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Attempt:
    """What limits and pages need of one attempt; `counts`: against the learner's limits."""

    id: int
    queued_at: datetime
    unfinished: bool
    counts: bool


@dataclass(frozen=True, slots=True)
class _Member:
    """One of those who hand in together: what they were given, and their attempts, by task of the course."""

    extensions: dict[int, Extension]
    attempts: dict[int, list[_Attempt]]

    def given(self, task: AssignedTask) -> Extension:
        return self.extensions.get(task.id, Extension())

    def due_at(self, task: AssignedTask) -> datetime | None:
        return self.given(task).due_at or task.terms.due_at

    def caps(self, task: AssignedTask) -> Caps:
        terms, given = task.terms, self.given(task)
        everybodys = Caps(terms.max_per_day, terms.max_total, terms.max_concurrent)
        return everybodys.and_extra(given.extra_per_day, given.extra_total)

    def refused_by_caps(self, now: datetime, task: AssignedTask) -> Refusal | None:
        own = self.attempts.get(task.id, [])
        counted = [one.queued_at for one in own if one.counts]
        return refused_by_caps(now, self.caps(task), counted, sum(one.unfinished for one in own))


def _extended(connection: Connection, course_id: int, person_id: int) -> dict[int, Extension]:
    """What a person has been given beside what everybody has, by task of the course."""
    rows = connection.execute(
        select(
            ExtensionRow.course_task_id,
            ExtensionRow.due_at,
            ExtensionRow.extra_total,
            ExtensionRow.extra_per_day,
            ExtensionRow.extra_minutes,
        )
        .join(EnrolmentRow, EnrolmentRow.id == ExtensionRow.enrolment_id)
        .where(and_(EnrolmentRow.course_id == course_id, EnrolmentRow.person_id == person_id))
    )
    return {row[0]: Extension(*row[1:]) for row in rows}


def _begun(connection: Connection, ids: Sequence[int], person_id: int) -> dict[int, datetime]:
    """When a person began which of these exams."""
    rows = connection.execute(
        select(ExamSittingRow.course_task_id, ExamSittingRow.begun_at).where(
            ExamSittingRow.person_id == person_id, ExamSittingRow.course_task_id.in_(ids)
        )
    )
    return {row.course_task_id: row.begun_at for row in rows}


def _hidden_until(task: AssignedTask, due: datetime | None, now: datetime) -> datetime | None:
    """As `gradebook.feedback_opens_at`."""
    if task.terms.exam_minutes is not None:
        return None if task.released else UNRELEASED
    return due if task.terms.hidden_until_due and due is not None and now <= due else None


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


_COURSE = select(
    CourseRow.closed_at, CourseRow.archived_at, CourseRow.late_days_total, CourseRow.late_days_per_task
)
