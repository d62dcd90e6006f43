"""What people add to a grade: overrides and comments. The judged grade itself is never changed."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey
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


class CommentRow(Base):
    """A remark on an attempt, at a line of a file or (path None) at the whole."""

    __tablename__ = "comments"

    id: Mapped[Id]
    attempt_id: Mapped[int] = mapped_column(ForeignKey("attempts.id", ondelete="CASCADE"), index=True)
    author_id: Mapped[int | None] = mapped_column(ForeignKey("people.id", ondelete="SET NULL"), index=True)
    path: Mapped[str | None] = mapped_column(SafeString(300))
    line: Mapped[int | None]
    text: Mapped[str]
    created_at: Mapped[datetime]
