"""A code that lets people into a course. Says nothing about who used it: that is in the events."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from grader.store.tables.base import Base, Id, SafeString, one_of
from grader.store.tables.person import Role


class InvitationRow(Base):
    """A code, the role that it gives, until when, and how often it may be used (None: as often as asked).

    Attributes:
        section, external_id: of whoever enters with it, as `EnrolmentRow` has them.
        login, name, email: of the one person whom it is for, as a list named them; None: it is for many.
    """

    __tablename__ = "invitations"

    id: Mapped[Id]
    course_id: Mapped[int] = mapped_column(ForeignKey("courses.id", ondelete="CASCADE"), index=True)
    code: Mapped[str] = mapped_column(SafeString(40), unique=True)
    role: Mapped[Role] = mapped_column(one_of(Role))
    expires_at: Mapped[datetime | None]
    max_uses: Mapped[int | None]
    num_uses: Mapped[int] = mapped_column(default=0)
    revoked_at: Mapped[datetime | None]
    section: Mapped[str | None] = mapped_column(SafeString(120))
    external_id: Mapped[str | None] = mapped_column(SafeString(120))
    login: Mapped[str | None] = mapped_column(SafeString(120))
    name: Mapped[str | None] = mapped_column(SafeString(200))
    email: Mapped[str | None] = mapped_column(SafeString(254))
