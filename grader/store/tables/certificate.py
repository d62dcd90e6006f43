"""A certificate of competency: that it was earned, and when. Its page is made elsewhere."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from grader.store.tables.base import Base, Id, SafeString


class CertificateRow(Base):
    """One per person and course; `public_id` is the unguessable end of the address that verifies it."""

    __tablename__ = "certificates"
    __table_args__ = (UniqueConstraint("course_id", "person_id"),)

    id: Mapped[Id]
    public_id: Mapped[str] = mapped_column(SafeString(40), unique=True)
    course_id: Mapped[int] = mapped_column(ForeignKey("courses.id", ondelete="CASCADE"))
    person_id: Mapped[int] = mapped_column(ForeignKey("people.id", ondelete="CASCADE"), index=True)
    issued_at: Mapped[datetime]
    revoked_at: Mapped[datetime | None]
