"""Which submissions of a task look alike, as they were last compared. Follows from the submissions, never a source."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from grader.store.tables.base import Base, JsonText


class ComparisonRow(Base):
    """The last comparison of a class's submissions for one task.

    Attributes:
        newest_attempt: the last attempt that was there; one with a greater number was not looked at.
        num_compared, num_too_large: submissions of the class that were compared, and that were left out for their size.
        num_earlier: submissions of other courses for the task of the same name that they were compared with.
        skeleton: whether what everybody was given was left out.
    """

    __tablename__ = "comparisons"

    course_task_id: Mapped[int] = mapped_column(
        ForeignKey("course_tasks.id", ondelete="CASCADE"), primary_key=True
    )
    newest_attempt: Mapped[int]
    num_compared: Mapped[int]
    num_too_large: Mapped[int]
    num_earlier: Mapped[int]
    skeleton: Mapped[bool]
    compared_at: Mapped[datetime]


class SimilarPairRow(Base):
    """Two attempts that share passages; the first is of the task's class, the other of it or of another course.

    Attributes:
        num_lines: that they share; share_a, share_b: part of each one's own code, 0 to 1.
        passages: where, each with what much of the class has, too: `[[path, first, last, partner], …]` of either side.
    """

    __tablename__ = "similar_pairs"

    course_task_id: Mapped[int] = mapped_column(
        ForeignKey("course_tasks.id", ondelete="CASCADE"), primary_key=True
    )
    attempt_a: Mapped[int] = mapped_column(
        ForeignKey("attempts.id", ondelete="CASCADE"), primary_key=True, index=True
    )
    attempt_b: Mapped[int] = mapped_column(
        ForeignKey("attempts.id", ondelete="CASCADE"), primary_key=True, index=True
    )
    num_lines: Mapped[int]
    share_a: Mapped[float]
    share_b: Mapped[float]
    passages: Mapped[list[Any]] = mapped_column(JsonText())
