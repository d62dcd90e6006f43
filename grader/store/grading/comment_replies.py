"""Answers to comments, whose turn it is, and taking comments back. Writing one is `reviews`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import ColumnElement, Select, func, insert, or_, select, update
from sqlalchemy.orm import aliased

from grader.errors import UsageError
from grader.store.attempts.attempt_family import family_of, lock_attempt
from grader.store.clock import database_now
from grader.store.courses.learners import ALL_LEARNERS, Learners
from grader.store.database import Store
from grader.store.delivery.notices import notify_comment
from grader.store.events import add_event
from grader.store.grading.pseudonyms import key_column, shown_name
from grader.store.grading.standings import recompute_standings
from grader.store.tables import AttemptRow, CommentRow, CourseTaskRow, CreditRow, PersonRow


@dataclass(frozen=True, slots=True)
class UnansweredReply:
    """The last word of a learner below a comment, which nobody of the staff has answered."""

    attempt_id: int
    comment_id: int
    name: str | None
    task_title: str
    text: str
    at: datetime


def reply(store: Store, attempt_id: int, comment_id: int, text: str, *, author_id: int) -> int:
    """Answer a comment, or one of its answers; returns the answer's id.

    Raises:
        UsageError: the text is empty, or there is no such comment on this attempt.
    """
    if not text.strip():
        raise UsageError("an answer needs a text")
    with store.write() as connection:
        seq = lock_attempt(connection, attempt_id).seq
        found = connection.execute(
            select(CommentRow.id, CommentRow.parent_id).where(
                CommentRow.id == comment_id,
                CommentRow.attempt_id.in_(family_of(connection, attempt_id)),
                CommentRow.withdrawn_at.is_(None),
            )
        ).one_or_none()
        if found is None:
            raise UsageError("there is no such comment any more")
        made = connection.execute(
            insert(CommentRow)
            .values(
                attempt_id=attempt_id,
                author_id=author_id,
                text=text,
                created_at=database_now(),
                parent_id=found.parent_id or found.id,
            )
            .returning(CommentRow.id)
        ).scalar_one()
        add_event(connection, attempt_id, seq, "replied", actor_id=author_id, comment_id=made)
        notify_comment(connection, attempt_id, made, author_id)
        return made


def withdraw_comment(store: Store, attempt_id: int, comment_id: int, *, actor_id: int) -> bool:
    """Take a comment back, with its answers and what it changed; False: there is none that holds."""
    with store.write() as connection:
        person_id, course_task_id, seq = lock_attempt(connection, attempt_id)
        done = connection.execute(
            update(CommentRow)
            .where(
                or_(CommentRow.id == comment_id, CommentRow.parent_id == comment_id),
                CommentRow.attempt_id.in_(family_of(connection, attempt_id)),
                CommentRow.withdrawn_at.is_(None),
            )
            .values(withdrawn_at=database_now())
        ).rowcount
        add_event(connection, attempt_id, seq, "comment_withdrawn", actor_id=actor_id, comment_id=comment_id)
        recompute_standings(connection, course_task_id, [person_id])
        return bool(done)


def settle(store: Store, attempt_id: int, comment_id: int, *, actor_id: int) -> None:
    """Say that a learner's last word needs no answer."""
    with store.write() as connection:
        seq = lock_attempt(connection, attempt_id).seq
        connection.execute(
            update(CommentRow)
            .where(
                CommentRow.id == comment_id,
                CommentRow.attempt_id.in_(family_of(connection, attempt_id)),
            )
            .values(settled_at=database_now())
        )
        add_event(connection, attempt_id, seq, "reply_settled", actor_id=actor_id, comment_id=comment_id)


def unanswered_replies(
    store: Store, course_id: int, learners: Learners = ALL_LEARNERS, *, limit: int = 100
) -> tuple[UnansweredReply, ...]:
    """What these learners of a course have answered to comments and staff have not answered, the oldest first."""
    statement = _waiting(
        AttemptRow.id,
        CommentRow.id.label("comment_id"),
        CommentRow.author_id,
        PersonRow.name,
        CourseTaskRow.title,
        CommentRow.text,
        CommentRow.created_at,
        key_column(AttemptRow.course_task_id).label("key"),
    )
    with store.read() as connection:
        rows = connection.execute(
            statement.where(*_of(course_id, learners)).order_by(CommentRow.id).limit(limit)
        )
        return tuple(
            UnansweredReply(
                row.id,
                row.comment_id,
                shown_name(row.key, row.author_id, row.name),
                row.title,
                row.text,
                row.created_at,
            )
            for row in rows
        )


def num_unanswered(store: Store, course_id: int, learners: Learners = ALL_LEARNERS) -> int:
    """How many of them there are."""
    with store.read() as connection:
        number: int = connection.execute(_num_waiting(course_id, learners)).scalar_one()
        return number


# Kept, as every page of a course says the number, and making the statement takes longer than running it.
@lru_cache(maxsize=128)
def _num_waiting(course_id: int, learners: Learners) -> Select[Any]:
    return _waiting(func.count()).where(*_of(course_id, learners))


def _of(course_id: int, learners: Learners) -> tuple[ColumnElement[bool], ...]:
    return CourseTaskRow.course_id == course_id, learners.among(course_id)


def _waiting(*columns: Any) -> Select[Any]:
    """The last words of threads that are a learner's own: whose attempt it is, or of their group."""
    later = aliased(CommentRow)
    answered = select(later.id).where(
        later.parent_id == CommentRow.parent_id, later.id > CommentRow.id, later.withdrawn_at.is_(None)
    )
    shared = select(CreditRow.submission_id).where(CreditRow.person_id == CommentRow.author_id)
    return (
        select(*columns)
        .select_from(CommentRow)
        # From the few answers to their attempts, not from all attempts of the course: `+ 0` hides the index for that.
        .join(AttemptRow, AttemptRow.id == CommentRow.attempt_id + 0)
        .join(CourseTaskRow, CourseTaskRow.id == AttemptRow.course_task_id)
        .join(PersonRow, PersonRow.id == CommentRow.author_id)
        .where(
            CommentRow.parent_id.is_not(None),
            CommentRow.withdrawn_at.is_(None),
            CommentRow.settled_at.is_(None),
            or_(AttemptRow.person_id == CommentRow.author_id, AttemptRow.submission_id.in_(shared)),
            ~answered.correlate(CommentRow).exists(),
        )
    )
