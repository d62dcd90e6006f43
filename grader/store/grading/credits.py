"""Whose attempts count for whom: one's own, and those of whoever was in one's group when they handed in.

The one place that says so. Standings, limits, lists and doors ask here; who is in a group now is `learner_groups`. Of a
submission's sender nothing is kept here, so that a course without groups has no rows and pays nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Subquery,
    and_,
    bindparam,
    delete,
    func,
    insert,
    select,
    union_all,
    update,
)
from sqlalchemy.orm import aliased

from grader.store.database import Store
from grader.store.tables import (
    AttemptRow,
    Base,
    CourseTaskRow,
    CreditRow,
    EnrolmentRow,
    ExtensionRow,
    GradeCodeRow,
    GroupMemberRow,
    SubmissionRow,
    TaskGradingRow,
)
from grader.store.tables.person import Role

_attempt, _credited = aliased(AttemptRow), aliased(AttemptRow)


def counts_for(person_ids: Collection[int]) -> ColumnElement[bool]:
    """That an attempt counts for one of these people: a condition on `AttemptRow`."""
    # By an index each: a database that is told "one or the other" reads all of a course instead.
    own = select(_attempt.id).where(_attempt.person_id.in_(person_ids))
    shared = (
        select(_credited.id)
        .join(CreditRow, CreditRow.submission_id == _credited.submission_id)
        .where(CreditRow.person_id.in_(person_ids))
    )
    return AttemptRow.id.in_(union_all(own, shared))


def people_of(store: Store, attempt_id: int) -> frozenset[int]:
    """Everybody for whom an attempt counts; nobody where there is none."""
    with store.read() as connection:
        return frozenset(connection.execute(_PEOPLE, {"attempt": attempt_id}).scalars())


def people_of_each(connection: Connection, attempt_ids: Collection[int]) -> dict[int, list[int]]:
    """The same of several attempts that count, the sender first."""
    found: dict[int, list[int]] = {}
    counting = (AttemptRow.id.in_(attempt_ids), AttemptRow.counts)
    senders = select(AttemptRow.id, AttemptRow.person_id).where(*counting)
    others = (
        select(AttemptRow.id, CreditRow.person_id)
        .join(CreditRow, CreditRow.submission_id == AttemptRow.submission_id)
        .where(*counting)
    )
    for statement in (senders, others):
        for attempt_id, person_id in connection.execute(statement):
            found.setdefault(attempt_id, []).append(person_id)
    return found


def credited(course_task_ids: Collection[int], person_ids: Collection[int] | None = None) -> Subquery:
    """`submission_id` and `person_id`: for whom each submission of these tasks counts; None: for anybody."""
    own = select(SubmissionRow.id.label("submission_id"), SubmissionRow.person_id.label("person_id")).where(
        SubmissionRow.course_task_id.in_(course_task_ids)
    )
    shared = (
        select(CreditRow.submission_id, CreditRow.person_id)
        .join(SubmissionRow, SubmissionRow.id == CreditRow.submission_id)
        .where((SubmissionRow.course_task_id + 0).in_(course_task_ids))
    )
    if person_ids is not None:
        own = own.where(SubmissionRow.person_id.in_(person_ids))
        shared = shared.where(CreditRow.person_id.in_(person_ids))
    return union_all(own, shared).subquery("credited")


def anything_shared(connection: Connection, course_task_ids: Collection[int]) -> bool:
    """Whether any submission of these tasks counts for others than its sender."""
    found = (
        select(CreditRow.submission_id)
        .join(SubmissionRow, SubmissionRow.id == CreditRow.submission_id)
        .where(SubmissionRow.course_task_id.in_(course_task_ids))
        .limit(1)
    )
    return connection.execute(found).first() is not None


def whoever_shares(
    connection: Connection, course_task_id: int, person_ids: Collection[int]
) -> frozenset[int]:
    """These people, and all with whom they share a submission of the task: what changes for one changes for them."""
    theirs = credited([course_task_id], person_ids)
    others = select(CreditRow.person_id).where(CreditRow.submission_id.in_(select(theirs.c.submission_id)))
    senders = (
        select(SubmissionRow.person_id)
        .join(CreditRow, CreditRow.submission_id == SubmissionRow.id)
        .where(SubmissionRow.id.in_(select(theirs.c.submission_id)))
    )
    return frozenset(person_ids) | set(connection.execute(union_all(others, senders)).scalars())


def companions(
    connection: Connection, pairs: Iterable[tuple[int, int]]
) -> dict[tuple[int, int], tuple[int, ...]]:
    """With whom each of these people hands in for a task just now, by person and task; who is alone is not in it."""
    wanted = set(pairs)
    people, tasks = ({pair[index] for pair in wanted} for index in (0, 1))
    found: dict[tuple[int, int], list[int]] = {}
    for row in connection.execute(_COMPANIONS, {"people": sorted(people), "course_tasks": sorted(tasks)}):
        if (pair := (row.person_id, row.course_task_id)) in wanted:
            found.setdefault(pair, []).append(row.other)
    return {pair: tuple(others) for pair, others in found.items()}


def share(connection: Connection, submissions: Iterable[tuple[int, Iterable[int]]]) -> None:
    """Let submissions, each with the people beside its sender, count for those, too."""
    rows = [
        {"submission_id": submission_id, "person_id": person_id}
        for submission_id, others in submissions
        for person_id in others
    ]
    if rows:
        connection.execute(insert(CreditRow), rows)


def hand_over(connection: Connection, person_id: int) -> None:
    """Make what somebody handed in for a group that of another member: it goes on to count when they are erased."""
    heirs = connection.execute(
        select(SubmissionRow.id, func.min(CreditRow.person_id).label("heir"))
        .join(CreditRow, CreditRow.submission_id == SubmissionRow.id)
        .where(SubmissionRow.person_id == person_id)
        .group_by(SubmissionRow.id)
        .order_by(SubmissionRow.id)
    ).all()
    for submission_id, heir in heirs:
        theirs = select(AttemptRow.id).where(AttemptRow.submission_id == submission_id)
        # The name of the request was the sender's own, and could be one that the heir has used, too.
        changed: tuple[tuple[type[Base], Any, dict[str, Any]], ...] = (
            (AttemptRow, AttemptRow.submission_id == submission_id, {}),
            (GradeCodeRow, GradeCodeRow.attempt_id.in_(theirs), {}),
            (SubmissionRow, SubmissionRow.id == submission_id, {"idempotency_key": None}),
        )
        for table, condition, more in changed:
            connection.execute(update(table).where(condition).values(person_id=heir, **more))
        connection.execute(
            delete(CreditRow).where(CreditRow.submission_id == submission_id, CreditRow.person_id == heir)
        )


def latest_due_at() -> ColumnElement[Any]:
    """The latest due date of those for whom an attempt counts beside its sender; None: it counts for nobody else.

    A column beside `AttemptRow` and its `CourseTaskRow`.
    """
    return (
        select(func.max(func.coalesce(ExtensionRow.due_at, CourseTaskRow.due_at)))
        .select_from(CreditRow)
        .join(
            EnrolmentRow,
            and_(
                EnrolmentRow.person_id == CreditRow.person_id,
                EnrolmentRow.course_id == CourseTaskRow.course_id,
            ),
        )
        .outerjoin(
            ExtensionRow,
            and_(
                ExtensionRow.enrolment_id == EnrolmentRow.id, ExtensionRow.course_task_id == CourseTaskRow.id
            ),
        )
        .where(CreditRow.submission_id == AttemptRow.submission_id)
        .correlate(AttemptRow, CourseTaskRow)
        .scalar_subquery()
    )


_PEOPLE = union_all(
    select(AttemptRow.person_id).where(AttemptRow.id == bindparam("attempt")),
    select(CreditRow.person_id)
    .join(AttemptRow, AttemptRow.submission_id == CreditRow.submission_id)
    .where(AttemptRow.id == bindparam("attempt")),
)
_own, _other = aliased(GroupMemberRow), aliased(GroupMemberRow)
# Who left the course, or teaches it by now, hands in with nobody; and an exam everybody writes alone.
_COMPANIONS = (
    select(_own.person_id, CourseTaskRow.id.label("course_task_id"), _other.person_id.label("other"))
    .join(_other, and_(_other.group_id == _own.group_id, _other.person_id != _own.person_id))
    .join(CourseTaskRow, CourseTaskRow.course_id == _own.course_id)
    .join(
        EnrolmentRow,
        and_(EnrolmentRow.course_id == _own.course_id, EnrolmentRow.person_id == _other.person_id),
    )
    .outerjoin(TaskGradingRow, TaskGradingRow.course_task_id == CourseTaskRow.id)
    .where(
        _own.person_id.in_(bindparam("people", expanding=True)),
        CourseTaskRow.id.in_(bindparam("course_tasks", expanding=True)),
        EnrolmentRow.role == Role.LEARNER,
        CourseTaskRow.exam_minutes.is_(None),
        func.coalesce(TaskGradingRow.alone, False).is_(False),
    )
    .order_by(_other.person_id)
)
