"""Which courses somebody ever took part in, for the question who looks after their account. Says nothing of now."""

from __future__ import annotations

from sqlalchemy import ForeignKey, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from grader.store.tables.base import Base, Id


class MembershipRow(Base):
    """One person in one course, now or earlier: it stays when the enrolment ends.

    Attributes:
        taught: they were staff there at some time.
        entrusted: they came by themselves, with an account that the course made, or by an administrator's hand; not
            by an instructor who merely knew the login.
    """

    __tablename__ = "memberships"
    __table_args__ = (UniqueConstraint("person_id", "course_id"),)

    id: Mapped[Id]
    person_id: Mapped[int] = mapped_column(ForeignKey("people.id", ondelete="CASCADE"))
    course_id: Mapped[int] = mapped_column(ForeignKey("courses.id", ondelete="CASCADE"), index=True)
    taught: Mapped[bool]
    entrusted: Mapped[bool]
