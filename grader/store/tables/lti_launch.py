"""Launches of the last hour: so that none is played twice, and one can be gone on with in another window."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from grader.store.tables.base import Base, Digest, Id, JsonText


class LtiLaunchRow(Base):
    """One launch that was checked and found true.

    Attributes:
        nonce_digest: SHA-256 of its nonce, which is ours and holds once.
        claims: what it says, as `grader.lti.launch_message` reads it.
        person_id: whom it signed in; None: nobody yet.
        moved_at: when it moved to a window of its own, which it may once.
        forget_at: when nothing can be done with it any more.
    """

    __tablename__ = "lti_launches"

    id: Mapped[Id]
    platform_id: Mapped[int] = mapped_column(ForeignKey("lti_platforms.id", ondelete="CASCADE"))
    nonce_digest: Mapped[Digest] = mapped_column(unique=True)
    claims: Mapped[dict[str, Any]] = mapped_column(JsonText())
    person_id: Mapped[int | None] = mapped_column(ForeignKey("people.id", ondelete="CASCADE"))
    moved_at: Mapped[datetime | None]
    forget_at: Mapped[datetime]
