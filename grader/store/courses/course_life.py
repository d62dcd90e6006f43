"""From a draft to the archive: a course is published, renamed, closed, archived, and taken out of the archive again.

Deleting one is `course_deletion`, holding it once more `course_copies`.
"""

from __future__ import annotations

import re

from sqlalchemy import func, update
from sqlalchemy.exc import IntegrityError

from grader.errors import UsageError
from grader.store.clock import database_now
from grader.store.database import Store
from grader.store.events import audit
from grader.store.tables import CourseRow

NAME_HINT = "Small letters, digits, dots and hyphens, such as ddp-autumn."
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,59}")


def is_course_name(name: str) -> bool:
    """Whether a course can have this short name."""
    return _NAME.fullmatch(name) is not None


def publish_course(store: Store, course_id: int, *, actor_id: int | None) -> bool:
    """Let the people of a course see it; False: it is no draft."""
    with store.write() as connection:
        done = connection.execute(
            update(CourseRow)
            .where(CourseRow.id == course_id, CourseRow.draft_since.is_not(None))
            .values(draft_since=None)
        ).rowcount
        if done:
            audit(connection, f"course:{course_id}", "course_published", actor_id=actor_id)
        return bool(done)


def set_closed(store: Store, course_id: int, closed: bool, *, actor_id: int | None) -> None:
    """Close a course, so that nothing more is handed in, or open it again."""
    with store.write() as connection:
        connection.execute(
            update(CourseRow)
            .where(CourseRow.id == course_id)
            .values(closed_at=database_now() if closed else None)
        )
        audit(connection, f"course:{course_id}", "closed" if closed else "opened", actor_id=actor_id)


def set_words(store: Store, course_id: int, title: str, about: str | None, *, actor_id: int | None) -> None:
    """Give a course another title and another text about itself; None: that of its course file."""
    with store.write() as connection:
        connection.execute(
            update(CourseRow).where(CourseRow.id == course_id).values(title=title, about=about)
        )
        audit(connection, f"course:{course_id}", "words_changed", actor_id=actor_id, title=title)


def rename(store: Store, course_id: int, name: str, *, actor_id: int | None) -> None:
    """Give a course another short name; what its course file calls it is remembered.

    Raises:
        UsageError: there is a course of that name, or it is none that a course can have.
    """
    if not is_course_name(name):
        raise UsageError(f"{name!r} is no short name of a course. {NAME_HINT}")
    try:
        with store.write() as connection:
            renamed = connection.execute(
                update(CourseRow)
                .where(CourseRow.id == course_id, CourseRow.name != name)
                .values(name=name, file_name=func.coalesce(CourseRow.file_name, CourseRow.name))
            ).rowcount
            if renamed:
                audit(connection, f"course:{course_id}", "course_renamed", actor_id=actor_id, name=name)
    except IntegrityError:
        raise UsageError(f"there is a course named {name} already") from None


def archive_course(store: Store, course_id: int, *, actor_id: int | None) -> bool:
    """Let a course be read only; what waits is judged to its end. False: it is archived already."""
    return _set_archived(store, course_id, True, actor_id)


def restore_course(store: Store, course_id: int, *, actor_id: int | None) -> bool:
    """Take a course out of the archive; False: it is not archived."""
    return _set_archived(store, course_id, False, actor_id)


def _set_archived(store: Store, course_id: int, archived: bool, actor_id: int | None) -> bool:
    there = CourseRow.archived_at.is_(None) if archived else CourseRow.archived_at.is_not(None)
    with store.write() as connection:
        done = connection.execute(
            update(CourseRow)
            .where(CourseRow.id == course_id, CourseRow.deleted_at.is_(None), there)
            .values(archived_at=database_now() if archived else None)
        ).rowcount
        if done:
            kind = "course_archived" if archived else "course_restored"
            audit(connection, f"course:{course_id}", kind, actor_id=actor_id)
        return bool(done)
