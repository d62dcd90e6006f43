"""By whom else an account is vouched for: a provider of sign-on, or a learning platform. Holds no secret of theirs."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from grader.store.tables.base import Base, Id, SafeString


class IdentityRow(Base):
    """What one issuer calls one person of ours.

    Attributes:
        issuer: the provider's or platform's `iss`, an address.
        subject: its `sub`: the same person's for good, and nobody else's there.
        used_at: last sign-in by it; None: never yet.
    """

    __tablename__ = "identities"
    __table_args__ = (UniqueConstraint("issuer", "subject"),)

    id: Mapped[Id]
    person_id: Mapped[int] = mapped_column(ForeignKey("people.id", ondelete="CASCADE"), index=True)
    issuer: Mapped[str] = mapped_column(SafeString(255))
    subject: Mapped[str] = mapped_column(SafeString(255))
    created_at: Mapped[datetime]
    used_at: Mapped[datetime | None]
