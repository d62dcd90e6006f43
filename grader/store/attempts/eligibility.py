"""What holds for those who hand in just now: the terms, earlier requests of the same name, attempts that were had.

Read for many people at once, because they come at once; their enrolments are locked on the way, in the same order by
everybody. Writes nothing, decides what the limits say and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, TypeAlias

from sqlalchemy import Connection, Row, and_, bindparam, or_, select, text, tuple_, union_all

from grader.store.attempts.limits import (
    Caps,
    Dates,
    ExamTime,
    LateBank,
    Limit,
    Refusal,
    counts_against_limits,
    days_late,
    group_due_date,
    refused_by_caps,
    refused_by_dates,
)
from grader.store.clock import database_now
from grader.store.courses.late_days import days_in_use
from grader.store.grading.credits import companions
from grader.store.tables import (
    AttemptRow,
    CourseRow,
    CourseTaskRow,
    CreditRow,
    EnrolmentRow,
    ExamSittingRow,
    ExtensionRow,
    SubmissionRow,
)
from grader.store.tables.attempt import AttemptState, Lane
from grader.store.tables.person import TRIES_OUT, Role

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

    Dates do by the latest due date of the group and the sender's late days, a count does where it does for one of the
    group: it is an attempt of each. Those who try tasks out hand in at any time, as often as they like, unless the
    course is archived.
    """
    archived = {
        pair: Refusal(Limit.COURSE_ARCHIVED) for pair in groups if terms[pair].archived_at is not None
    }
    learning = {
        pair: group
        for pair, group in groups.items()
        if pair not in archived and terms[pair].role not in TRIES_OUT
    }
    everybody = set[LearnerTask]().union(*learning.values())
    had: dict[LearnerTask, list[AnyRow]] = {pair: [] for pair in everybody if _counts(terms[pair])}
    if had:
        for row in connection.execute(_HAD, _apart(had)):
            if (pair := (row.person_id, row.course_task_id)) in had:
                had[pair].append(row)
    free = _free_days(connection, terms, learning)
    found = {
        pair: _refused_by_dates(terms[pair], due_date(terms, group), free.get(pair, 0))
        or next(filter(None, (_refused_by_caps(terms[one], had.get(one, [])) for one in group)), None)
        for pair, group in learning.items()
    }
    return archived | {pair: refusal for pair, refusal in found.items() if refusal is not None}


def due_date(terms: dict[LearnerTask, AnyRow], group: Iterable[LearnerTask]) -> datetime | None:
    """When the task is due for those who hand in together; see `group_due_date`.

    Each has their own date where there is one, even an earlier one.
    """
    return group_due_date([terms[one].extended or terms[one].due_at for one in group])


def late_on(terms: AnyRow, due_at: datetime | None, at: datetime) -> int:
    """Days begun after that due date at that moment; an exam takes nothing late."""
    return 0 if terms.exam_minutes is not None else days_late(at, due_at, terms.grace_minutes)


def _free_days(
    connection: Connection,
    terms: dict[LearnerTask, AnyRow],
    groups: dict[LearnerTask, tuple[LearnerTask, ...]],
) -> dict[LearnerTask, int]:
    """Late days that are there for whoever hands in late just now, where their course gives any."""
    late = {
        pair: one
        for pair, group in groups.items()
        if (one := terms[pair]).late_days_total is not None and late_on(one, due_date(terms, group), one.now)
    }
    if not late:
        return {}
    in_use = days_in_use(connection, {one.course_id for one in late.values()}, {pair[0] for pair in late})
    found = {}
    for pair, one in late.items():
        used = in_use.get((one.course_id, pair[0]), {})
        elsewhere = sum(days for task_id, days in used.items() if task_id != pair[1])
        found[pair] = LateBank(one.late_days_total, one.late_days_per_task).available(elsewhere)
    return found


def _counts(terms: AnyRow) -> bool:
    return any(cap is not None for cap in (terms.max_per_day, terms.max_total, terms.max_concurrent))


def _refused_by_dates(terms: AnyRow, due_at: datetime | None, free_days: int) -> Refusal | None:
    if terms.closed_at is not None:
        return Refusal(Limit.COURSE_CLOSED)
    exam = None
    if terms.exam_minutes is not None and due_at is not None:
        exam = ExamTime(terms.exam_minutes, terms.extra_minutes or 0, terms.begun_at, due_at)
    dates = Dates(
        *(terms.opens_at, due_at, terms.late_policy, terms.late_days, terms.grace_minutes, free_days, exam)
    )
    return refused_by_dates(terms.now, dates)


def _refused_by_caps(terms: AnyRow, attempts: list[AnyRow]) -> Refusal | None:
    caps = Caps(terms.max_per_day, terms.max_total, terms.max_concurrent).and_extra(
        terms.extra_per_day, terms.extra_total
    )
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
        CourseRow.archived_at,
        CourseRow.late_days_total,
        CourseRow.late_days_per_task,
        CourseTaskRow.course_id,
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
        CourseTaskRow.grace_minutes,
        CourseTaskRow.exam_minutes,
        ExtensionRow.extra_total,
        ExtensionRow.extra_per_day,
        ExtensionRow.extra_minutes,
        ExamSittingRow.begun_at,
        database_now().label("now"),
    )
    .join(CourseTaskRow, CourseTaskRow.course_id == EnrolmentRow.course_id)
    .join(CourseRow, CourseRow.id == EnrolmentRow.course_id)
    .outerjoin(
        ExtensionRow,
        and_(ExtensionRow.enrolment_id == EnrolmentRow.id, ExtensionRow.course_task_id == CourseTaskRow.id),
    )
    .outerjoin(
        ExamSittingRow,
        and_(
            ExamSittingRow.course_task_id == CourseTaskRow.id,
            ExamSittingRow.person_id == EnrolmentRow.person_id,
        ),
    )
    .where(
        EnrolmentRow.person_id.in_(bindparam("people", expanding=True)),
        CourseTaskRow.id.in_(bindparam("course_tasks", expanding=True)),
        CourseTaskRow.withdrawn_at.is_(None),
        EnrolmentRow.role != Role.OBSERVER,
        or_(
            and_(CourseTaskRow.draft_since.is_(None), CourseRow.draft_since.is_(None)),
            EnrolmentRow.role.in_(TRIES_OUT),
        ),
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
