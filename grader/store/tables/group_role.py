"""Roles that somebody has because a provider of sign-on counts them to a group, and loses with it."""

from __future__ import annotations

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from grader.store.tables.base import Base, Id, SafeString, one_of
from grader.store.tables.person import Role


class GroupRoleRow(Base):
    """One role, on the site or in a course, that the groups of one issuer give to one person.

    What staff has given is written nowhere here, and stays.

    Attributes:
        course_id: None: on the whole site.
        role: what they give.
        base_role: what the person has without any group, a role's value; None: they take no part in the course.
    """

    __tablename__ = "group_roles"

    id: Mapped[Id]
    person_id: Mapped[int] = mapped_column(ForeignKey("people.id", ondelete="CASCADE"), index=True)
    issuer: Mapped[str] = mapped_column(SafeString(255))
    course_id: Mapped[int | None] = mapped_column(ForeignKey("courses.id", ondelete="CASCADE"), index=True)
    role: Mapped[Role] = mapped_column(one_of(Role))
    base_role: Mapped[str | None] = mapped_column(SafeString(16))
