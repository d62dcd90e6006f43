"""Requests of learners that a person looks at a grade again: asked in time, once at a time, and decided with a reply.

What a decision changes is an override (`reviews`) or a new judgement (`regrades`); here stands that it was asked for,
and what came of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, func, insert, select, update
from sqlalchemy.orm import aliased

from grader.errors import UsageError
from grader.store.attempts.attempt_family import family_of, lock_attempt
from grader.store.clock import database_now
from grader.store.clock import now as database_time
from grader.store.courses.learners import ALL_LEARNERS, Learners
from grader.store.database import Store
from grader.store.delivery.notices import notify_request_decided
from grader.store.events import add_event, audit
from grader.store.grading.credits import latest_due_at
from grader.store.grading.pseudonyms import key_column, shown_name
from grader.store.tables import (
    AttemptRow,
    CourseTaskRow,
    EnrolmentRow,
    ExtensionRow,
    GradeRow,
    GradingRulesRow,
    PersonRow,
    RegradeRequestRow,
)
from grader.store.tables.regrade_request import RequestDecision


@dataclass(frozen=True, slots=True)
class RegradeRequest:
    """A request; `decision` and what belongs to it are None while it is open, `name` and `actor` of who was erased."""

    id: int
    attempt_id: int
    course_id: int
    name: str | None
    task_title: str
    text: str
    created_at: datetime
    decision: RequestDecision | None
    reply: str | None
    actor: str | None
    decided_at: datetime | None


def asked_until(store: Store, attempt_id: int) -> datetime | None:
    """Until when the learner of an attempt may ask; None: the course takes no requests, or there is no grade."""
    with store.read() as connection:
        return _asked_until(connection, attempt_id)


def ask_for_regrade(store: Store, attempt_id: int, text: str, *, person_id: int) -> int:
    """Ask that somebody looks at a grade again, and return the request's number.

    Raises:
        UsageError: no reason is given, the time for it is over, or another request about the same work is open.
    """
    if not text.strip():
        raise UsageError("say what should be looked at, and why")
    with store.write() as connection:
        # The attempt is locked: of two windows the second finds the request of the first.
        attempt = lock_attempt(connection, attempt_id)
        until, now = _asked_until(connection, attempt_id), database_time(connection)
        if until is None:
            raise UsageError("this course takes no such requests")
        if now > until:
            raise UsageError("the time in which you could ask about this attempt is over")
        family = family_of(connection, attempt_id)
        there = connection.execute(
            select(RegradeRequestRow.id).where(
                RegradeRequestRow.root_id == family[0], RegradeRequestRow.decided_at.is_(None)
            )
        ).scalar_one_or_none()
        if there is not None:
            raise UsageError("you have asked already, and nobody has decided yet")
        made = connection.execute(
            insert(RegradeRequestRow)
            .values(
                attempt_id=attempt_id,
                root_id=family[0],
                person_id=person_id,
                text=text,
                created_at=database_now(),
            )
            .returning(RegradeRequestRow.id)
        ).scalar_one()
        add_event(connection, attempt_id, attempt.seq, "regrade_requested", actor_id=person_id)
        return made


def decide_request(
    store: Store, request_id: int, decision: RequestDecision, reply: str, *, actor_id: int
) -> None:
    """Close a request; what it changed was changed before.

    Raises:
        UsageError: there is no reply, or the request is not open any more.
    """
    if not reply.strip():
        raise UsageError("a decision needs a reply, which the learner reads")
    with store.write() as connection:
        row = connection.execute(
            update(RegradeRequestRow)
            .where(RegradeRequestRow.id == request_id, RegradeRequestRow.decided_at.is_(None))
            .values(decision=decision, reply=reply, actor_id=actor_id, decided_at=database_now())
            .returning(RegradeRequestRow.attempt_id, RegradeRequestRow.person_id)
        ).one_or_none()
        if row is None:
            raise UsageError("this request was decided meanwhile")
        attempt = lock_attempt(connection, row.attempt_id)
        add_event(
            connection,
            row.attempt_id,
            attempt.seq,
            "regrade_request_decided",
            actor_id=actor_id,
            decision=decision,
            reason=reply,
        )
        notify_request_decided(connection, row.attempt_id, request_id)
        course_id = connection.execute(
            select(CourseTaskRow.course_id).where(CourseTaskRow.id == attempt.course_task_id)
        ).scalar_one()
        audit(
            connection,
            f"course:{course_id}",
            "regrade_request_decided",
            actor_id=actor_id,
            course_task_id=attempt.course_task_id,
            attempt=row.attempt_id,
            decision=decision,
        )


def requests_about(store: Store, attempt_id: int) -> tuple[RegradeRequest, ...]:
    """All requests about an attempt and what else judged the same submission, newest first."""
    with store.read() as connection:
        rows = connection.execute(
            _requests()
            .where(RegradeRequestRow.root_id == family_of(connection, attempt_id)[0])
            .order_by(RegradeRequestRow.id.desc())
        )
        return tuple(map(_request, rows))


def open_requests(
    store: Store, course_id: int, learners: Learners = ALL_LEARNERS, *, limit: int = 100
) -> tuple[RegradeRequest, ...]:
    """The requests of these learners of a course that nobody has decided, the oldest first."""
    with store.read() as connection:
        rows = connection.execute(
            _requests().where(*_open_in(course_id, learners)).order_by(RegradeRequestRow.id).limit(limit)
        )
        return tuple(map(_request, rows))


def num_open_requests(store: Store, course_id: int, learners: Learners = ALL_LEARNERS) -> int:
    """How many of them there are."""
    with store.read() as connection:
        return connection.execute(_num_open(course_id, learners)).scalar_one()


# Kept, as every page of a course says the number, and making the statement takes longer than running it.
@lru_cache(maxsize=128)
def _num_open(course_id: int, learners: Learners) -> Select[int]:
    return (
        select(func.count())
        .select_from(RegradeRequestRow)
        # From the few requests to their attempts, not from all attempts of the course: `+ 0` hides the index for that.
        .join(AttemptRow, AttemptRow.id == RegradeRequestRow.attempt_id + 0)
        .join(CourseTaskRow, CourseTaskRow.id == AttemptRow.course_task_id)
        .where(*_open_in(course_id, learners))
    )


def _open_in(course_id: int, learners: Learners) -> tuple[ColumnElement[bool], ...]:
    return (
        CourseTaskRow.course_id == course_id,
        RegradeRequestRow.decided_at.is_(None),
        learners.among(course_id),
    )


def _asked_until(connection: Connection, attempt_id: int) -> datetime | None:
    row = connection.execute(
        select(
            GradeRow.created_at,
            CourseTaskRow.hidden_until_due,
            func.coalesce(ExtensionRow.due_at, CourseTaskRow.due_at).label("due_at"),
            latest_due_at().label("group_due_at"),
            GradingRulesRow.regrade_days,
        )
        .select_from(AttemptRow)
        .join(GradeRow, GradeRow.attempt_id == AttemptRow.id)
        .join(CourseTaskRow, CourseTaskRow.id == AttemptRow.course_task_id)
        .join(GradingRulesRow, GradingRulesRow.course_id == CourseTaskRow.course_id)
        .outerjoin(
            EnrolmentRow,
            (EnrolmentRow.course_id == CourseTaskRow.course_id)
            & (EnrolmentRow.person_id == AttemptRow.person_id),
        )
        .outerjoin(
            ExtensionRow,
            (ExtensionRow.enrolment_id == EnrolmentRow.id)
            & (ExtensionRow.course_task_id == CourseTaskRow.id),
        )
        .where(AttemptRow.id == attempt_id)
    ).one_or_none()
    if row is None or row.regrade_days is None:
        return None
    # From when they were told: at once, or where that waits for the due date, then.
    told = [row.created_at, *((row.due_at, row.group_due_at) if row.hidden_until_due else ())]
    last: datetime = max(at for at in told if at is not None)
    return last + timedelta(days=row.regrade_days)


_decider = aliased(PersonRow)


def _requests() -> Select[*tuple[Any, ...]]:
    return (
        select(
            RegradeRequestRow.id,
            RegradeRequestRow.attempt_id,
            RegradeRequestRow.person_id,
            RegradeRequestRow.text,
            RegradeRequestRow.created_at,
            RegradeRequestRow.decision,
            RegradeRequestRow.reply,
            RegradeRequestRow.decided_at,
            CourseTaskRow.course_id,
            CourseTaskRow.title.label("task_title"),
            PersonRow.name.label("name"),
            _decider.name.label("actor"),
            key_column(AttemptRow.course_task_id).label("key"),
        )
        .select_from(RegradeRequestRow)
        .join(AttemptRow, AttemptRow.id == RegradeRequestRow.attempt_id)
        .join(CourseTaskRow, CourseTaskRow.id == AttemptRow.course_task_id)
        .outerjoin(PersonRow, PersonRow.id == RegradeRequestRow.person_id)
        .outerjoin(_decider, _decider.id == RegradeRequestRow.actor_id)
    )


def _request(row: Any) -> RegradeRequest:
    return RegradeRequest(
        row.id,
        row.attempt_id,
        row.course_id,
        shown_name(row.key, row.person_id, row.name),
        row.task_title,
        row.text,
        row.created_at,
        row.decision,
        row.reply,
        row.actor,
        row.decided_at,
    )
