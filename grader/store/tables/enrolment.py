"""Who takes part in which course, and who has more time or attempts. Says nothing about what they handed in."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from grader.store.tables.base import Base, Id, SafeString, one_of
from grader.store.tables.person import Role


class EnrolmentRow(Base):
    """One person in one course.

    Attributes:
        role: what they are there: learner, assistant, observer or instructor.
        section: group of the timetable that a learner is taught in, or that an assistant grades; None: all.
        external_id: what another system calls them, such as a student number.
    """

    __tablename__ = "enrolments"
    __table_args__ = (UniqueConstraint("course_id", "person_id"),)

    id: Mapped[Id]
    course_id: Mapped[int] = mapped_column(ForeignKey("courses.id", ondelete="CASCADE"))
    person_id: Mapped[int] = mapped_column(ForeignKey("people.id", ondelete="CASCADE"), index=True)
    role: Mapped[Role] = mapped_column(one_of(Role))
    created_at: Mapped[datetime]
    section: Mapped[str | None] = mapped_column(SafeString(120))
    external_id: Mapped[str | None] = mapped_column(SafeString(120))


class ExtensionRow(Base):
    """More time or attempts at one task, for one person.

    Attributes:
        due_at: their own due date, None: everybody's.
        extra_total, extra_per_day: attempts beside those that everybody has; extra_minutes: of an exam's own time.
    """

    __tablename__ = "extensions"
    __table_args__ = (UniqueConstraint("enrolment_id", "course_task_id"),)

    id: Mapped[Id]
    enrolment_id: Mapped[int] = mapped_column(ForeignKey("enrolments.id", ondelete="CASCADE"))
    course_task_id: Mapped[int] = mapped_column(ForeignKey("course_tasks.id", ondelete="CASCADE"), index=True)
    due_at: Mapped[datetime | None]
    reason: Mapped[str]
    extra_total: Mapped[int | None]
    extra_per_day: Mapped[int | None]
    extra_minutes: Mapped[int | None]
