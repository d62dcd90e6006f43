"""What people add to a grade: overrides and comments. The judged grade itself is never changed."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey, Index, text
from sqlalchemy.orm import Mapped, mapped_column

from grader.model.grade import Verdict
from grader.store.tables.base import Base, Id, SafeString, one_of


class OverrideRow(Base):
    """What holds instead of the judged verdict and points, by whom and why; a later one replaces an earlier one.

    `withdrawn_at` is set when it holds no longer.
    """

    __tablename__ = "overrides"

    id: Mapped[Id]
    attempt_id: Mapped[int] = mapped_column(ForeignKey("attempts.id", ondelete="CASCADE"), index=True)
    actor_id: Mapped[int | None] = mapped_column(ForeignKey("people.id", ondelete="SET NULL"), index=True)
    verdict: Mapped[Verdict] = mapped_column(one_of(Verdict))
    points: Mapped[float]
    reason: Mapped[str]
    created_at: Mapped[datetime]
    withdrawn_at: Mapped[datetime | None]


class CommentEntryRow(Base):
    """A comment of a course's library, to be used again.

    Attributes:
        title: what staff find it by; text: what learners read.
        item: id of the rubric item that its points are about; None: the total.
        points: what it changes, below 0: it takes; None: nothing.
        retired_at: it is offered no more; what used it stays.
    """

    __tablename__ = "comment_entries"

    id: Mapped[Id]
    course_id: Mapped[int] = mapped_column(ForeignKey("courses.id", ondelete="CASCADE"), index=True)
    title: Mapped[str] = mapped_column(SafeString(120))
    text: Mapped[str]
    item: Mapped[str | None] = mapped_column(SafeString(80))
    points: Mapped[float | None]
    retired_at: Mapped[datetime | None]


class CommentRow(Base):
    """A remark on an attempt, at a line of a file or (path None) at the whole.

    Attributes:
        parent_id: the comment that this one answers; None: it answers none.
        entry_id: the entry of the library that it came from; None: it was written here.
        item, points: what it changes, as in the library; points as far as the item has or lacks them.
        withdrawn_at: it is neither shown nor counted any more.
        settled_at: staff saw it and have nothing to add.
    """

    __tablename__ = "comments"
    __table_args__ = (
        # What changes points, for whole gradebooks at once.
        Index(
            "ix_comments_points",
            "attempt_id",
            "points",
            sqlite_where=text("points IS NOT NULL AND withdrawn_at IS NULL"),
            postgresql_where=text("points IS NOT NULL AND withdrawn_at IS NULL"),
        ),
    )

    id: Mapped[Id]
    attempt_id: Mapped[int] = mapped_column(ForeignKey("attempts.id", ondelete="CASCADE"), index=True)
    author_id: Mapped[int | None] = mapped_column(ForeignKey("people.id", ondelete="SET NULL"), index=True)
    path: Mapped[str | None] = mapped_column(SafeString(300))
    line: Mapped[int | None]
    text: Mapped[str]
    created_at: Mapped[datetime]
    parent_id: Mapped[int | None] = mapped_column(ForeignKey("comments.id", ondelete="CASCADE"), index=True)
    entry_id: Mapped[int | None] = mapped_column(
        ForeignKey("comment_entries.id", ondelete="SET NULL"), index=True
    )
    item: Mapped[str | None] = mapped_column(SafeString(80))
    points: Mapped[float | None]
    withdrawn_at: Mapped[datetime | None]
    settled_at: Mapped[datetime | None]
