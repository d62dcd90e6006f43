"""A course's library of comments: written once, used again, changed for those that used them where that is wanted."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, func, insert, select, update

from grader.errors import UsageError
from grader.store.attempts.attempt_family import family_of, lock_attempt
from grader.store.clock import database_now
from grader.store.database import Store
from grader.store.events import add_event, audit
from grader.store.grading.comment_points import CommentPoints, possible_change
from grader.store.grading.standings import recompute_standings
from grader.store.tables import CommentEntryRow, CommentRow

MOST_POINTS = 100.0


@dataclass(frozen=True, slots=True)
class LibraryComment:
    """What an entry says: how staff find it, what learners read, and what it changes (see `CommentPoints`)."""

    title: str
    text: str
    points: CommentPoints | None = None


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """An entry of a course's library; `num_used`: comments that came from it and hold."""

    id: int
    comment: LibraryComment
    num_used: int


def add_entry(store: Store, course_id: int, comment: LibraryComment, *, actor_id: int) -> int:
    """Keep a comment for use again, and return its number.

    Raises:
        UsageError: it has no title or no text, or changes more than there can be.
    """
    _check(comment)
    with store.write() as connection:
        made = connection.execute(
            insert(CommentEntryRow)
            .values(course_id=course_id, **_values(comment))
            .returning(CommentEntryRow.id)
        ).scalar_one()
        audit(
            connection, f"course:{course_id}", "library_comment_added", actor_id=actor_id, title=comment.title
        )
        return made


def change_entry(
    store: Store, course_id: int, entry_id: int, comment: LibraryComment, *, also_used: bool, actor_id: int
) -> int:
    """Change an entry and (`also_used`) the comments that came from it; returns how many of those changed.

    Points of those follow in any case then; a text that was altered where it was used stays.

    Raises:
        UsageError: there is no such entry, or see `add_entry`.
    """
    _check(comment)
    with store.write() as connection:
        before = _locked(connection, course_id, entry_id)
        connection.execute(
            update(CommentEntryRow).where(CommentEntryRow.id == entry_id).values(**_values(comment))
        )
        used = (
            connection.execute(
                select(CommentRow.id, CommentRow.attempt_id, CommentRow.text)
                .where(CommentRow.entry_id == entry_id, CommentRow.withdrawn_at.is_(None))
                .order_by(CommentRow.attempt_id, CommentRow.id)
            ).all()
            if also_used
            else ()
        )
        changed: dict[int, set[int]] = {}
        for one in used:
            attempt = lock_attempt(connection, one.attempt_id)
            # Its own points leave first, so that there is room again where it had taken it.
            connection.execute(
                update(CommentRow).where(CommentRow.id == one.id).values(points=None, item=None)
            )
            points = _points_on(connection, one.attempt_id, comment.points)
            connection.execute(
                update(CommentRow)
                .where(CommentRow.id == one.id)
                .values(
                    text=comment.text if one.text == before else one.text,
                    points=points,
                    item=None if comment.points is None else comment.points.item,
                )
            )
            add_event(
                connection,
                one.attempt_id,
                attempt.seq,
                "comment_changed",
                actor_id=actor_id,
                comment_id=one.id,
                change=points,
            )
            changed.setdefault(attempt.course_task_id, set()).add(attempt.person_id)
        for course_task_id, people in sorted(changed.items()):
            recompute_standings(connection, course_task_id, sorted(people))
        audit(
            connection,
            f"course:{course_id}",
            "library_comment_changed",
            actor_id=actor_id,
            title=comment.title,
            num_changed=len(used),
        )
        return len(used)


def retire_entry(store: Store, course_id: int, entry_id: int, *, actor_id: int) -> None:
    """Offer an entry no more; comments that came from it stay.

    Raises:
        UsageError: there is no such entry.
    """
    with store.write() as connection:
        _locked(connection, course_id, entry_id)
        title = connection.execute(
            update(CommentEntryRow)
            .where(CommentEntryRow.id == entry_id)
            .values(retired_at=database_now())
            .returning(CommentEntryRow.title)
        ).scalar_one()
        audit(connection, f"course:{course_id}", "library_comment_retired", actor_id=actor_id, title=title)


def entries_of(store: Store, course_id: int) -> tuple[StoredEntry, ...]:
    """What a course's library offers, by title."""
    with store.read() as connection:
        rows = connection.execute(
            select(
                CommentEntryRow.id,
                CommentEntryRow.title,
                CommentEntryRow.text,
                CommentEntryRow.points,
                CommentEntryRow.item,
                func.count(CommentRow.id).label("num_used"),
            )
            .outerjoin(
                CommentRow,
                (CommentRow.entry_id == CommentEntryRow.id) & CommentRow.withdrawn_at.is_(None),
            )
            .where(CommentEntryRow.course_id == course_id, CommentEntryRow.retired_at.is_(None))
            .group_by(CommentEntryRow.id)
            .order_by(CommentEntryRow.title, CommentEntryRow.id)
        )
        return tuple(
            StoredEntry(
                row.id,
                LibraryComment(
                    row.title, row.text, None if row.points is None else CommentPoints(row.points, row.item)
                ),
                row.num_used,
            )
            for row in rows
        )


def _points_on(connection: Connection, attempt_id: int, wanted: CommentPoints | None) -> float | None:
    if wanted is None:
        return None
    try:
        return possible_change(connection, attempt_id, family_of(connection, attempt_id), wanted)
    except UsageError:
        # Its rubric has no such item: of this attempt there is nothing to change.
        return None


def _locked(connection: Connection, course_id: int, entry_id: int) -> str:
    text = connection.execute(
        select(CommentEntryRow.text)
        .where(CommentEntryRow.id == entry_id, CommentEntryRow.course_id == course_id)
        .with_for_update()
    ).scalar_one_or_none()
    if text is None:
        raise UsageError("there is no such comment in the library")
    return text


def _check(comment: LibraryComment) -> None:
    if not comment.title.strip() or not comment.text.strip():
        raise UsageError("a comment of the library needs a title and a text")
    if comment.points is not None and not 0 < abs(comment.points.points) <= MOST_POINTS:
        raise UsageError(f"a comment changes between {-MOST_POINTS:g} and {MOST_POINTS:g} points")


def _values(comment: LibraryComment) -> dict[str, str | float | None]:
    points = comment.points
    return {
        "title": comment.title,
        "text": comment.text,
        "points": None if points is None else points.points,
        "item": None if points is None else points.item,
    }
