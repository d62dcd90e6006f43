"""What holds for those who hand in just now: the terms, earlier requests of the same name, attempts that were had.

Read for many people at once, because they come at once; their enrolments are locked on the way, in the same order by
everybody. Writes nothing, decides what the limits say and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, TypeAlias

from sqlalchemy import Connection, Row, and_, bindparam, or_, select, text, tuple_, union_all

from grader.store.clock import database_now
from grader.store.credits import companions
from grader.store.limits import (
    Caps,
    Dates,
    Limit,
    Refusal,
    counts_against_limits,
    group_due_date,
    group_refusal,
    refused_by_caps,
    refused_by_dates,
)
from grader.store.tables import (
    AttemptRow,
    CourseRow,
    CourseTaskRow,
    CreditRow,
    EnrolmentRow,
    ExtensionRow,
    SubmissionRow,
)
from grader.store.tables.attempt import AttemptState, Lane
from grader.store.tables.person import Role

AnyRow: TypeAlias = Row[*tuple[Any, ...]]
LearnerTask: TypeAlias = tuple[int, int]
"""A person and the task of a course that they hand in for."""


def terms_of(
    connection: Connection, pairs: Iterable[LearnerTask]
) -> tuple[dict[LearnerTask, AnyRow], dict[LearnerTask, tuple[LearnerTask, ...]]]:
    """On what terms each hands in, and each with whom: themselves first, then the others of their group.

    Who takes no part in the course has no terms. Terms are also of the others; all enrolments are locked, so that of
    two uploads by one learner, or by one group, the second counts the first.
    """
    wanted = set(pairs)
    together = companions(connection, wanted)
    groups = {pair: (pair, *((one, pair[1]) for one in together.get(pair, ()))) for pair in wanted}
    everybody = wanted.union(*groups.values())
    rows = connection.execute(_TERMS, _apart(everybody))
    terms = {pair: row for row in rows if (pair := (row.person_id, row.id)) in everybody}
    return terms, {
        pair: (pair, *(one for one in group[1:] if one in terms)) for pair, group in groups.items()
    }


def earlier_requests(connection: Connection, keys: Iterable[tuple[int, str]]) -> dict[int, AnyRow]:
    """The attempt that each person's request of that name, the idempotency key, made before; None made one: absent."""
    asked = list(keys)
    if not asked:
        return {}
    found: dict[int, AnyRow] = {}
    for row in connection.execute(_EARLIER, {"keys": asked}):
        # A regrade's attempt is of the same submission; the first is the request's own.
        found.setdefault(row.person_id, row)
    return found


def refusals_of(
    connection: Connection,
    terms: dict[LearnerTask, AnyRow],
    groups: dict[LearnerTask, tuple[LearnerTask, ...]],
) -> dict[LearnerTask, Refusal]:
    """What stands in the way of those who hand in, each with their group (see `terms_of`).

    Instructors of the course hand in at any time, as often as they like.
    """
    everybody = set[LearnerTask]().union(*groups.values())
    learning = {pair: terms[pair] for pair in everybody if terms[pair].role is not Role.INSTRUCTOR}
    had: dict[LearnerTask, list[AnyRow]] = {pair: [] for pair, one in learning.items() if _counts(one)}
    if had:
        for row in connection.execute(_HAD, _apart(had)):
            if (pair := (row.person_id, row.course_task_id)) in had:
                had[pair].append(row)
    judged = {pair: _refusal(one, had.get(pair, [])) for pair, one in learning.items()}
    refusals = {pair: group_refusal([judged.get(one) for one in group]) for pair, group in groups.items()}
    return {pair: refusal for pair, refusal in refusals.items() if refusal is not None}


def due_date(terms: dict[LearnerTask, AnyRow], group: Iterable[LearnerTask]) -> datetime | None:
    """When the task is due for those who hand in together; see `group_due_date`."""
    return group_due_date([_own_due_date(terms[one]) for one in group])


def _own_due_date(terms: AnyRow) -> Any:
    """Their own date where there is one, even an earlier one."""
    return terms.extended or terms.due_at


def _counts(terms: AnyRow) -> bool:
    return any(cap is not None for cap in (terms.max_per_day, terms.max_total, terms.max_concurrent))


def _refusal(terms: AnyRow, attempts: list[AnyRow]) -> Refusal | None:
    if terms.closed_at is not None:
        return Refusal(Limit.COURSE_CLOSED)
    refusal = refused_by_dates(
        terms.now, Dates(terms.opens_at, _own_due_date(terms), terms.late_policy, terms.late_days)
    )
    if refusal is not None:
        return refusal
    caps = Caps(terms.max_per_day, terms.max_total, terms.max_concurrent)
    counted = [
        row.queued_at for row in attempts if counts_against_limits(row.state, row.claimed_at, row.cached_from)
    ]
    unfinished = sum(row.state in (AttemptState.QUEUED, AttemptState.RUNNING) for row in attempts)
    return refused_by_caps(terms.now, caps, counted, unfinished)


def _apart(pairs: Iterable[LearnerTask]) -> dict[str, list[int]]:
    # Both sides for themselves find more than was asked for, by an index each; what is too much is left out by us.
    people, tasks = zip(*pairs, strict=True)
    return {"people": sorted(set(people)), "course_tasks": sorted(set(tasks))}


# Statements of the busiest operation are made once: making them takes longer than running them.
_TERMS = (
    select(
        EnrolmentRow.person_id,
        EnrolmentRow.role,
        CourseRow.closed_at,
        CourseTaskRow.id,
        CourseTaskRow.task,
        CourseTaskRow.version,
        CourseTaskRow.profile,
        CourseTaskRow.need,
        CourseTaskRow.opens_at,
        ExtensionRow.due_at.label("extended"),
        CourseTaskRow.due_at,
        CourseTaskRow.late_policy,
        CourseTaskRow.late_days,
        CourseTaskRow.max_per_day,
        CourseTaskRow.max_total,
        CourseTaskRow.max_concurrent,
        database_now().label("now"),
    )
    .join(CourseTaskRow, CourseTaskRow.course_id == EnrolmentRow.course_id)
    .join(CourseRow, CourseRow.id == EnrolmentRow.course_id)
    .outerjoin(
        ExtensionRow,
        and_(ExtensionRow.enrolment_id == EnrolmentRow.id, ExtensionRow.course_task_id == CourseTaskRow.id),
    )
    .where(
        EnrolmentRow.person_id.in_(bindparam("people", expanding=True)),
        CourseTaskRow.id.in_(bindparam("course_tasks", expanding=True)),
        CourseTaskRow.withdrawn_at.is_(None),
        or_(CourseTaskRow.draft_since.is_(None), EnrolmentRow.role == Role.INSTRUCTOR),
    )
    # In order, so that two processes with the same people never wait for each other in a ring.
    .order_by(EnrolmentRow.id)
    .with_for_update(of=EnrolmentRow)
)
_EARLIER = (
    select(
        SubmissionRow.person_id,
        SubmissionRow.id.label("submission_id"),
        SubmissionRow.digest,
        SubmissionRow.course_task_id,
        SubmissionRow.submitted_at,
        AttemptRow.id,
        AttemptRow.state,
    )
    .join(AttemptRow, AttemptRow.submission_id == SubmissionRow.id)
    .where(
        tuple_(SubmissionRow.person_id, SubmissionRow.idempotency_key).in_(bindparam("keys", expanding=True))
    )
    .order_by(AttemptRow.id)
)
_COUNTED = (
    AttemptRow.queued_at,
    AttemptRow.state,
    AttemptRow.claimed_at,
    AttemptRow.cached_from,
    AttemptRow.id,
)
_AT_THESE: Any = bindparam("course_tasks", expanding=True)
# Their own attempts, and those of others that count for them: by the few credits, as `+ 0` hides the index of tasks.
_HAD = union_all(
    select(AttemptRow.person_id.label("person_id"), AttemptRow.course_task_id, *_COUNTED).where(
        AttemptRow.person_id.in_(bindparam("people", expanding=True)),
        AttemptRow.course_task_id.in_(_AT_THESE),
        AttemptRow.lane == Lane.INTERACTIVE,
    ),
    select(CreditRow.person_id, AttemptRow.course_task_id, *_COUNTED)
    .join(AttemptRow, AttemptRow.submission_id == CreditRow.submission_id)
    .where(
        CreditRow.person_id.in_(bindparam("people", expanding=True)),
        (AttemptRow.course_task_id + 0).in_(_AT_THESE),
        AttemptRow.lane == Lane.INTERACTIVE,
    ),
).order_by(text("id DESC"))
