"""What a course's staff tells all who take part. Says nothing about who read it."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from grader.store.tables.base import Base, Id, SafeString


class AnnouncementRow(Base):
    """One announcement.

    Attributes:
        author_id: None: was erased.
        text: Markdown.
        pinned: stays above the others.
    """

    __tablename__ = "announcements"

    id: Mapped[Id]
    course_id: Mapped[int] = mapped_column(ForeignKey("courses.id", ondelete="CASCADE"), index=True)
    author_id: Mapped[int | None] = mapped_column(ForeignKey("people.id", ondelete="SET NULL"), index=True)
    title: Mapped[str] = mapped_column(SafeString(200))
    text: Mapped[str]
    created_at: Mapped[datetime]
    pinned: Mapped[bool] = mapped_column(default=False)
