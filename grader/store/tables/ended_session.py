"""A browser's session that was ended before its time. Never holds what the browser holds, only a digest of it."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy.orm import Mapped, mapped_column

from grader.store.tables.base import Base, Digest


class EndedSessionRow(Base):
    """One session by the SHA-256 of its nonce; from `forget_at` on its cookie is too old anyway."""

    __tablename__ = "ended_sessions"

    nonce_hash: Mapped[Digest] = mapped_column(primary_key=True)
    forget_at: Mapped[datetime] = mapped_column(index=True)
