"""What people are told by mail, queued in the very transaction in which it happens: one function for each thing.

Of what was judged webhooks are told, too. A notice says of what it is, by number; the mail is written when it is sent,
from what holds then. Where this site has no mail nothing is queued.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable
from typing import Any

from sqlalchemy import Connection, select

from grader.model.grade import Verdict
from grader.store.delivery.deliveries import enqueue
from grader.store.delivery.delivery_channels import is_set_up
from grader.store.delivery.webhook_events import tell_judged
from grader.store.grading.credits import people_of_each
from grader.store.people.mailboxes import who_wants
from grader.store.tables import AttemptRow, CourseTaskRow, EnrolmentRow, GradeRow
from grader.store.tables.mail import MailKind
from grader.store.tables.person import Role

CHANNEL = "mail"
COLLECTED_S = 120.0
"""How long a notice waits for others of its kind, with which it is told in one mail."""


def notify_judged(connection: Connection, attempt_ids: Collection[int]) -> None:
    """Tell those for whom these attempts count how they were judged, or that they wait for an instructor; and webhooks.

    Those whose judgement does not count, such as a regrade that was not applied, are told nothing.
    """
    tell_judged(connection, attempt_ids)
    if not is_set_up(connection, CHANNEL):
        return
    people = people_of_each(connection, attempt_ids)
    rows = connection.execute(
        select(AttemptRow.id, GradeRow.verdict, CourseTaskRow.course_id)
        .join(GradeRow, GradeRow.attempt_id == AttemptRow.id)
        .join(CourseTaskRow, CourseTaskRow.id == AttemptRow.course_task_id)
        .where(AttemptRow.id.in_(people))
        .order_by(AttemptRow.id)
    )
    for row in rows:
        kind = MailKind.HELD if row.verdict is Verdict.HELD else MailKind.VERDICT
        _tell(connection, kind, people[row.id], row.course_id, {"attempt": row.id}, key=str(row.id))


def notify_decided(connection: Connection, attempt_id: int, seq: int) -> None:
    """Tell an attempt's learner that an instructor has decided it, or taken that back; `seq`: of the event."""
    _tell_owners(connection, MailKind.DECIDED, attempt_id, {}, key=f"{attempt_id}.{seq}")


def notify_request_decided(connection: Connection, attempt_id: int, request_id: int) -> None:
    """Tell those for whom an attempt counts what became of the request that somebody looks at it again."""
    told = {"request": request_id}
    _tell_owners(connection, MailKind.DECIDED, attempt_id, told, key=f"request.{request_id}")


def notify_comment(connection: Connection, attempt_id: int, comment_id: int, author_id: int) -> None:
    """Tell an attempt's learner that somebody else has remarked something on it."""
    told = {"comment": comment_id}
    _tell_owners(connection, MailKind.COMMENT, attempt_id, told, key=str(comment_id), but=author_id)


def notify_dates(
    connection: Connection, course_task_id: int, person_ids: Collection[int] | None = None
) -> None:
    """Tell learners that a task's dates are others now; None: all who take part. Of what they do not see, nobody."""
    if not is_set_up(connection, CHANNEL):
        return
    course_id = connection.execute(
        select(CourseTaskRow.course_id).where(
            CourseTaskRow.id == course_task_id,
            CourseTaskRow.withdrawn_at.is_(None),
            CourseTaskRow.draft_since.is_(None),
        )
    ).scalar_one_or_none()
    if course_id is None:
        return
    people = _in_course(connection, course_id, [Role.LEARNER]) if person_ids is None else person_ids
    told = {"course_task": course_task_id}
    _tell(connection, MailKind.DATE, people, course_id, told, key=secrets.token_hex(8))


def notify_announcement(
    connection: Connection, course_id: int, announcement_id: int, author_id: int | None
) -> None:
    """Tell all who take part in a course, but its author, that there is an announcement."""
    people = [one for one in _in_course(connection, course_id, list(Role)) if one != author_id]
    told = {"announcement": announcement_id}
    _tell(connection, MailKind.ANNOUNCEMENT, people, course_id, told, key=str(announcement_id))


def notify_summary(connection: Connection, course_id: int, day: str) -> int:
    """Tell a course's staff what waits for them, once for each day; returns how many are told now."""
    people = _in_course(connection, course_id, [Role.INSTRUCTOR, Role.ASSISTANT])
    return _tell(connection, MailKind.SUMMARY, people, course_id, {}, key=f"{course_id}:{day}")


def _tell_owners(
    connection: Connection,
    kind: MailKind,
    attempt_id: int,
    told: dict[str, Any],
    *,
    key: str,
    but: int | None = None,
) -> None:
    people = [one for one in people_of_each(connection, [attempt_id]).get(attempt_id, ()) if one != but]
    course_id = connection.execute(
        select(CourseTaskRow.course_id)
        .join(AttemptRow, AttemptRow.course_task_id == CourseTaskRow.id)
        .where(AttemptRow.id == attempt_id)
    ).scalar_one()
    _tell(connection, kind, people, course_id, {"attempt": attempt_id, **told}, key=key)


def _tell(
    connection: Connection,
    kind: MailKind,
    person_ids: Iterable[int],
    course_id: int,
    told: dict[str, Any],
    *,
    key: str,
) -> int:
    people = list(person_ids)
    if not people or not is_set_up(connection, CHANNEL):
        return 0
    return sum(
        enqueue(
            connection,
            CHANNEL,
            f"person:{person}",
            {"topic": kind.value, **told},
            key=f"mail:{kind.value}:{key}:{person}",
            course_id=course_id,
            not_before_s=COLLECTED_S,
        )
        for person in who_wants(connection, kind, people)
    )


def _in_course(connection: Connection, course_id: int, roles: list[Role]) -> list[int]:
    people = select(EnrolmentRow.person_id).where(
        EnrolmentRow.course_id == course_id, EnrolmentRow.role.in_(roles)
    )
    return list(connection.execute(people.order_by(EnrolmentRow.person_id)).scalars())
