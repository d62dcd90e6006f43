"""The final grade of an attempt: one, for good. What an instructor thinks of it stands beside it, in `review`."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column

from grader.model.finding import Severity
from grader.model.grade import Verdict
from grader.store.tables.base import Base, SafeString, one_of


class GradeRow(Base):
    """A grade.

    Attributes:
        points, max_points: as judged; what lateness and overrides make of them is `standing`'s.
        document: the whole grade as JSON of schema 1, for staff's eyes: readers filter it for learners.
    """

    __tablename__ = "grades"
    __table_args__ = (Index("ix_grades_verdict", "verdict"),)

    attempt_id: Mapped[int] = mapped_column(ForeignKey("attempts.id", ondelete="CASCADE"), primary_key=True)
    verdict: Mapped[Verdict] = mapped_column(one_of(Verdict))
    points: Mapped[float]
    max_points: Mapped[float]
    document: Mapped[str]
    created_at: Mapped[datetime]


class GradeCodeRow(Base):
    """A code that was found in an attempt, with person and task repeated so that a class view reads one index."""

    __tablename__ = "grade_codes"
    __table_args__ = (Index("ix_grade_codes_class", "course_task_id", "code", "person_id", "severity"),)

    attempt_id: Mapped[int] = mapped_column(ForeignKey("attempts.id", ondelete="CASCADE"), primary_key=True)
    code: Mapped[str] = mapped_column(SafeString(20), primary_key=True)
    severity: Mapped[Severity] = mapped_column(one_of(Severity))
    course_task_id: Mapped[int] = mapped_column(ForeignKey("course_tasks.id", ondelete="CASCADE"))
    person_id: Mapped[int] = mapped_column(ForeignKey("people.id", ondelete="CASCADE"), index=True)
