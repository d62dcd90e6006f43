"""What holds for those who hand in just now: the terms, earlier requests of the same name, attempts that were had.

Read for many people at once, because they come at once; their enrolments are locked on the way, in the same order by
everybody. Writes nothing, decides what the limits say and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from sqlalchemy import Connection, Row, and_, bindparam, select, tuple_

from grader.store.clock import database_now
from grader.store.limits import Caps, Dates, Limit, Refusal, held_against, refused_by_caps, refused_by_dates
from grader.store.tables import Attempt, Course, CourseTask, Enrolment, Extension, SubmissionRow
from grader.store.tables.attempt import AttemptState, Lane
from grader.store.tables.person import Role

Found: TypeAlias = Row[*tuple[Any, ...]]
Pair: TypeAlias = tuple[int, int]
"""A person and the task of a course that they hand in for."""


def terms_of(connection: Connection, pairs: Iterable[Pair]) -> dict[Pair, Found]:
    """On what terms each hands in; who takes no part in the course has none. Locks the enrolments.

    Of two uploads by one learner the second therefore counts the first.
    """
    wanted = set(pairs)
    rows = connection.execute(_TERMS, _apart(wanted))
    return {pair: row for row in rows if (pair := (row.person_id, row.id)) in wanted}


def earlier_of(connection: Connection, keys: Iterable[tuple[int, str]]) -> dict[int, Found]:
    """The attempt that each person's request of that name, the idempotency key, made before; None made one: absent."""
    asked = list(keys)
    if not asked:
        return {}
    found: dict[int, Found] = {}
    for row in connection.execute(_EARLIER, {"keys": asked}):
        # A regrade's attempt is of the same submission; the first is the request's own.
        found.setdefault(row.person_id, row)
    return found


def refusals_of(connection: Connection, terms: dict[Pair, Found]) -> dict[Pair, Refusal]:
    """What stands in whose way. Instructors of the course hand in at any time, as often as they like."""
    learning = {pair: one for pair, one in terms.items() if one.role is not Role.INSTRUCTOR}
    had: dict[Pair, list[Found]] = {pair: [] for pair, one in learning.items() if _counts(one)}
    if had:
        for row in connection.execute(_OWN, _apart(had)):
            if (pair := (row.person_id, row.course_task_id)) in had:
                had[pair].append(row)
    judged = {pair: _refusal(one, had.get(pair, [])) for pair, one in learning.items()}
    return {pair: refusal for pair, refusal in judged.items() if refusal is not None}


def due(terms: Found) -> Any:
    """When the task is due for this learner: their own date where there is one, even an earlier one."""
    return terms.extended or terms.due_at


def _counts(terms: Found) -> bool:
    return any(cap is not None for cap in (terms.max_per_day, terms.max_total, terms.max_concurrent))


def _refusal(terms: Found, attempts: list[Found]) -> Refusal | None:
    if terms.closed_at is not None:
        return Refusal(Limit.COURSE_CLOSED)
    refusal = refused_by_dates(
        terms.now, Dates(terms.opens_at, due(terms), terms.late_policy, terms.late_days)
    )
    if refusal is not None:
        return refusal
    caps = Caps(terms.max_per_day, terms.max_total, terms.max_concurrent)
    counted = [row.queued_at for row in attempts if held_against(row.state, row.claimed_at, row.cached_from)]
    unfinished = sum(row.state in (AttemptState.QUEUED, AttemptState.RUNNING) for row in attempts)
    return refused_by_caps(terms.now, caps, counted, unfinished)


def _apart(pairs: Iterable[Pair]) -> dict[str, list[int]]:
    # Both sides for themselves find more than was asked for, by an index each; what is too much is left out by us.
    people, tasks = zip(*pairs, strict=True)
    return {"people": sorted(set(people)), "course_tasks": sorted(set(tasks))}


# Statements of the busiest operation are made once: making them takes longer than running them.
_TERMS = (
    select(
        Enrolment.person_id,
        Enrolment.role,
        Course.closed_at,
        CourseTask.id,
        CourseTask.task,
        CourseTask.version,
        CourseTask.profile,
        CourseTask.need,
        CourseTask.opens_at,
        Extension.due_at.label("extended"),
        CourseTask.due_at,
        CourseTask.late_policy,
        CourseTask.late_days,
        CourseTask.max_per_day,
        CourseTask.max_total,
        CourseTask.max_concurrent,
        database_now().label("now"),
    )
    .join(CourseTask, CourseTask.course_id == Enrolment.course_id)
    .join(Course, Course.id == Enrolment.course_id)
    .outerjoin(
        Extension,
        and_(Extension.enrolment_id == Enrolment.id, Extension.course_task_id == CourseTask.id),
    )
    .where(
        Enrolment.person_id.in_(bindparam("people", expanding=True)),
        CourseTask.id.in_(bindparam("course_tasks", expanding=True)),
        CourseTask.withdrawn_at.is_(None),
    )
    # In order, so that two processes with the same people never wait for each other in a ring.
    .order_by(Enrolment.id)
    .with_for_update(of=Enrolment)
)
_EARLIER = (
    select(
        SubmissionRow.person_id,
        SubmissionRow.id.label("submission_id"),
        SubmissionRow.digest,
        SubmissionRow.course_task_id,
        SubmissionRow.submitted_at,
        Attempt.id,
        Attempt.state,
    )
    .join(Attempt, Attempt.submission_id == SubmissionRow.id)
    .where(
        tuple_(SubmissionRow.person_id, SubmissionRow.idempotency_key).in_(bindparam("keys", expanding=True))
    )
    .order_by(Attempt.id)
)
_OWN = (
    select(
        Attempt.person_id,
        Attempt.course_task_id,
        Attempt.queued_at,
        Attempt.state,
        Attempt.claimed_at,
        Attempt.cached_from,
    )
    .where(
        Attempt.person_id.in_(bindparam("people", expanding=True)),
        Attempt.course_task_id.in_(bindparam("course_tasks", expanding=True)),
        Attempt.lane == Lane.INTERACTIVE,
    )
    .order_by(Attempt.id.desc())
)
