"""Announcements of a course's staff to all who take part: written, pinned, taken away."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, delete, insert, select, update

from grader.errors import UsageError
from grader.store.clock import database_now
from grader.store.database import Store
from grader.store.delivery.notices import notify_announcement
from grader.store.events import audit
from grader.store.tables import AnnouncementRow, PersonRow

MOST_TITLE, MOST_TEXT = 200, 10_000


@dataclass(frozen=True, slots=True)
class Announcement:
    """One announcement; `text` is Markdown, `author` None: was erased."""

    id: int
    title: str
    text: str
    author: str | None
    created_at: datetime
    pinned: bool


def announce(
    store: Store, course_id: int, title: str, text: str, *, pinned: bool = False, author_id: int
) -> int:
    """Tell all who take part, by mail those who want it; returns the announcement's id.

    Raises:
        UsageError: title or text are missing or too long.
    """
    for what, words, most in (("title", title, MOST_TITLE), ("text", text, MOST_TEXT)):
        if not words.strip():
            raise UsageError(f"an announcement needs a {what}")
        if len(words) > most:
            raise UsageError(f"the {what} of an announcement has at most {most} characters")
    with store.write() as connection:
        made = connection.execute(
            insert(AnnouncementRow)
            .values(
                course_id=course_id,
                author_id=author_id,
                title=title.strip(),
                text=text,
                created_at=database_now(),
                pinned=pinned,
            )
            .returning(AnnouncementRow.id)
        ).scalar_one()
        audit(connection, f"course:{course_id}", "announced", actor_id=author_id, title=title.strip())
        notify_announcement(connection, course_id, made, author_id)
        return made


def announcements_of(store: Store, course_id: int) -> tuple[Announcement, ...]:
    """All announcements of a course: those that are pinned first, then the newest."""
    with store.read() as connection:
        rows = connection.execute(
            select(
                AnnouncementRow.id,
                AnnouncementRow.title,
                AnnouncementRow.text,
                PersonRow.name,
                AnnouncementRow.created_at,
                AnnouncementRow.pinned,
            )
            .outerjoin(PersonRow, PersonRow.id == AnnouncementRow.author_id)
            .where(AnnouncementRow.course_id == course_id)
            .order_by(AnnouncementRow.pinned.desc(), AnnouncementRow.id.desc())
        )
        return tuple(Announcement(*row) for row in rows)


def pin(store: Store, course_id: int, announcement_id: int, pinned: bool, *, actor_id: int) -> bool:
    """Keep one above the others, or no longer; False: the course has no such one."""
    with store.write() as connection:
        done = connection.execute(
            update(AnnouncementRow).where(*_one(course_id, announcement_id)).values(pinned=pinned)
        )
        kind = "announcement_pinned" if pinned else "announcement_unpinned"
        if done.rowcount:
            audit(connection, f"course:{course_id}", kind, actor_id=actor_id, announcement=announcement_id)
        return bool(done.rowcount)


def remove_announcement(store: Store, course_id: int, announcement_id: int, *, actor_id: int) -> bool:
    """Take one away; who was not mailed yet is not any more. False: the course has no such one."""
    with store.write() as connection:
        gone = connection.execute(
            delete(AnnouncementRow).where(*_one(course_id, announcement_id)).returning(AnnouncementRow.title)
        ).scalar_one_or_none()
        if gone is None:
            return False
        audit(connection, f"course:{course_id}", "announcement_removed", actor_id=actor_id, title=gone)
        return True


def _one(course_id: int, announcement_id: int) -> tuple[ColumnElement[bool], ...]:
    return AnnouncementRow.id == announcement_id, AnnouncementRow.course_id == course_id
