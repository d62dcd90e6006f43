"""Groups of learners that hand in together, and for whom else than its sender a submission counts."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from grader.store.tables.base import Base, Id, SafeString


class LearnerGroupRow(Base):
    """A group of a course; `join_code` lets learners of the course in, where the course's rules allow that."""

    __tablename__ = "learner_groups"
    __table_args__ = (UniqueConstraint("course_id", "name"),)

    id: Mapped[Id]
    course_id: Mapped[int] = mapped_column(ForeignKey("courses.id", ondelete="CASCADE"))
    name: Mapped[str] = mapped_column(SafeString(120))
    join_code: Mapped[str] = mapped_column(SafeString(40), unique=True)
    created_at: Mapped[datetime]


class GroupMemberRow(Base):
    """Who is in a group now: of each course in one at most. What was handed in before is `credits`'."""

    __tablename__ = "group_members"
    __table_args__ = (UniqueConstraint("course_id", "person_id"),)

    id: Mapped[Id]
    group_id: Mapped[int] = mapped_column(ForeignKey("learner_groups.id", ondelete="CASCADE"), index=True)
    course_id: Mapped[int] = mapped_column(ForeignKey("courses.id", ondelete="CASCADE"))
    person_id: Mapped[int] = mapped_column(ForeignKey("people.id", ondelete="CASCADE"), index=True)


class CreditRow(Base):
    """Somebody else for whom a submission counts: who was in its sender's group when it was handed in.

    It stays whatever becomes of the group, so that nobody loses what they had, nor gains what they had no part in.
    """

    __tablename__ = "credits"

    submission_id: Mapped[int] = mapped_column(
        ForeignKey("submissions.id", ondelete="CASCADE"), primary_key=True
    )
    person_id: Mapped[int] = mapped_column(
        ForeignKey("people.id", ondelete="CASCADE"), primary_key=True, index=True
    )
