"""Overrides and comments: what people add to a judged grade. The grade itself stays as it was judged."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import insert, select, update

from grader.errors import UsageError
from grader.model.grade import Verdict
from grader.store.attempts.attempt_family import family_of, lock_attempt
from grader.store.clock import database_now
from grader.store.database import Store
from grader.store.delivery.notices import notify_comment, notify_decided
from grader.store.events import add_event
from grader.store.grading.comment_points import NO_CHANGE, CommentChange, possible_change
from grader.store.grading.held_attempts import open_questions
from grader.store.grading.pseudonyms import by_pseudonym, shown_name
from grader.store.grading.questions import ANSWERED, ASKED
from grader.store.grading.standings import recompute_standings
from grader.store.tables import AttemptRow, CommentRow, GradeRow, OverrideRow, PersonRow


@dataclass(frozen=True, slots=True)
class StoredOverride:
    """An override; `withdrawn_at` None and the newest of its attempt: it holds. `actor` None: was erased."""

    id: int
    verdict: Verdict
    points: float
    reason: str
    actor: str | None
    created_at: datetime
    withdrawn_at: datetime | None


@dataclass(frozen=True, slots=True)
class StoredComment:
    """A comment; `path` None: on the whole.

    `parent_id`: the comment that it answers; `points`: what it changes, of the rubric's `item` or (None) of the total.
    """

    id: int
    author: str | None
    path: str | None
    line: int | None
    text: str
    created_at: datetime
    parent_id: int | None = None
    item: str | None = None
    points: float | None = None


def override(
    store: Store, attempt_id: int, verdict: Verdict, points: float, reason: str, *, actor_id: int
) -> int:
    """Let another verdict and other points hold, and return the override's id; it outlives regrades of the attempt.

    Raises:
        UsageError: the attempt has no grade, no reason is given, the points are not within what is possible, or the
            verdict is `held`, which decides nothing.
    """
    if verdict is Verdict.HELD:
        raise UsageError("an override decides; what is held waits for one")
    if not reason.strip():
        raise UsageError("an override needs a reason: it stands in the audit")
    with store.write() as connection:
        person_id, course_task_id, seq = lock_attempt(connection, attempt_id)
        most = connection.execute(
            select(GradeRow.max_points).where(GradeRow.attempt_id == attempt_id)
        ).scalar_one_or_none()
        if most is None:
            raise UsageError(f"attempt {attempt_id} has no grade to override")
        if not 0 <= points <= most:
            raise UsageError(f"points are 0 to {most:g}")
        override_id = connection.execute(
            insert(OverrideRow)
            .values(
                attempt_id=attempt_id,
                actor_id=actor_id,
                verdict=verdict,
                points=points,
                reason=reason,
                created_at=database_now(),
            )
            .returning(OverrideRow.id)
        ).scalar_one()
        add_event(
            connection,
            attempt_id,
            seq,
            "overridden",
            actor_id=actor_id,
            verdict=verdict,
            points=points,
            reason=reason,
        )
        recompute_standings(connection, course_task_id, [person_id])
        notify_decided(connection, attempt_id, seq)
        return override_id


def withdraw_override(store: Store, attempt_id: int, *, actor_id: int) -> bool:
    """Let what was judged hold again; False: nothing was overridden."""
    with store.write() as connection:
        person_id, course_task_id, seq = lock_attempt(connection, attempt_id)
        root = family_of(connection, attempt_id)
        done = connection.execute(
            update(OverrideRow)
            .where(OverrideRow.attempt_id.in_(root), OverrideRow.withdrawn_at.is_(None))
            .values(withdrawn_at=database_now())
        ).rowcount
        add_event(connection, attempt_id, seq, "override_withdrawn", actor_id=actor_id, number=done)
        recompute_standings(connection, course_task_id, [person_id])
        if done:
            notify_decided(connection, attempt_id, seq)
        return bool(done)


def overrides_of(store: Store, attempt_id: int) -> tuple[StoredOverride, ...]:
    """All overrides of an attempt and its regrades, newest first."""
    with store.read() as connection:
        rows = connection.execute(
            select(
                OverrideRow.id,
                OverrideRow.verdict,
                OverrideRow.points,
                OverrideRow.reason,
                PersonRow.name,
                OverrideRow.created_at,
                OverrideRow.withdrawn_at,
            )
            .outerjoin(PersonRow, PersonRow.id == OverrideRow.actor_id)
            .where(OverrideRow.attempt_id.in_(family_of(connection, attempt_id)))
            .order_by(OverrideRow.id.desc())
        )
        return tuple(StoredOverride(*row) for row in rows)


def comment(
    store: Store,
    attempt_id: int,
    text: str,
    *,
    author_id: int,
    path: str | None = None,
    line: int | None = None,
    change: CommentChange = NO_CHANGE,
) -> int:
    """Remark something on an attempt, at a line or on the whole; returns the comment's id.

    What it is to change it does as far as there is room.

    Raises:
        UsageError: the text is empty, there is no such attempt, or none whose points could be changed.
    """
    if not text.strip():
        raise UsageError("a comment needs a text")
    with store.write() as connection:
        person_id, course_task_id, seq = lock_attempt(connection, attempt_id)
        points, changed = change.points, None
        if points is not None:
            family = family_of(connection, attempt_id)
            changed = possible_change(connection, attempt_id, family, points)
        comment_id = connection.execute(
            insert(CommentRow)
            .values(
                attempt_id=attempt_id,
                author_id=author_id,
                path=path,
                line=line,
                text=text,
                created_at=database_now(),
                entry_id=change.entry_id,
                item=None if points is None else points.item,
                points=changed,
            )
            .returning(CommentRow.id)
        ).scalar_one()
        told = {} if changed is None else {"change": changed}
        add_event(connection, attempt_id, seq, "commented", actor_id=author_id, comment_id=comment_id, **told)
        if changed:
            recompute_standings(connection, course_task_id, [person_id])
        notify_comment(connection, attempt_id, comment_id, author_id)
        return comment_id


def ask(store: Store, attempt_id: int, text: str, *, author_id: int) -> int:
    """Ask the learner of a held attempt something: a comment that they read, and the review queue says so.

    Raises:
        UsageError: the text is empty, or there is no such attempt.
    """
    return _said(store, attempt_id, text, ASKED, author_id)


def answer(store: Store, attempt_id: int, text: str, *, author_id: int) -> int:
    """Answer what an instructor asked: a comment, and the review queue has the attempt for them again.

    Raises:
        UsageError: the text is empty, or no question waits for an answer.
    """
    if attempt_id not in open_questions(store, [attempt_id]):
        raise UsageError("no question waits for an answer")
    return _said(store, attempt_id, text, ANSWERED, author_id)


def _said(store: Store, attempt_id: int, text: str, kind: str, author_id: int) -> int:
    made = comment(store, attempt_id, text, author_id=author_id)
    with store.write() as connection:
        _, _, seq = lock_attempt(connection, attempt_id)
        add_event(connection, attempt_id, seq, kind, actor_id=author_id, comment_id=made)
    return made


def comments_of(store: Store, attempt_id: int) -> tuple[StoredComment, ...]:
    """All comments on an attempt and its regrades that were not withdrawn, oldest first, answers among them."""
    with store.read() as connection:
        rows = connection.execute(
            select(
                CommentRow.id,
                PersonRow.name,
                CommentRow.path,
                CommentRow.line,
                CommentRow.text,
                CommentRow.created_at,
                CommentRow.parent_id,
                CommentRow.item,
                CommentRow.points,
                CommentRow.author_id,
                by_pseudonym().label("key"),
            )
            .join(AttemptRow, AttemptRow.id == CommentRow.attempt_id)
            .outerjoin(PersonRow, PersonRow.id == CommentRow.author_id)
            .where(
                CommentRow.attempt_id.in_(family_of(connection, attempt_id)),
                CommentRow.withdrawn_at.is_(None),
            )
            .order_by(CommentRow.id)
        )
        return tuple(
            StoredComment(row.id, shown_name(row.key, row.author_id, row.name), *row[2:9]) for row in rows
        )
