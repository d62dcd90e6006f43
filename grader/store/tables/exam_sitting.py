"""When somebody began an exam: their own time counts from there. How long they have is the task's matter."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from grader.store.tables.base import Base


class ExamSittingRow(Base):
    """One person at one exam; made once, and never moved."""

    __tablename__ = "exam_sittings"

    course_task_id: Mapped[int] = mapped_column(
        ForeignKey("course_tasks.id", ondelete="CASCADE"), primary_key=True
    )
    person_id: Mapped[int] = mapped_column(
        ForeignKey("people.id", ondelete="CASCADE"), primary_key=True, index=True
    )
    begun_at: Mapped[datetime]
