"""What happened, in order: the live view of an attempt and the audit of everything else. Rows are never changed."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from grader.store.tables.base import Base, Id, JsonText, SafeString


class EventRow(Base):
    """One event.

    Attributes:
        attempt_id, seq: of an attempt's event: its number there, 1, 2, 3, … without gaps; otherwise None and 0.
        subject: of an audit event: what it is about, such as `course:3`.
        kind: `queued`, `claimed`, `phase`, `log`, `judged`, …; `data` belongs to it.
        actor_id: who did it; None: the service itself, or somebody who was erased.
    """

    __tablename__ = "events"
    __table_args__ = (
        UniqueConstraint("attempt_id", "seq"),
        Index("ix_events_subject", "subject", "id"),
    )

    id: Mapped[Id]
    attempt_id: Mapped[int | None] = mapped_column(ForeignKey("attempts.id", ondelete="CASCADE"))
    seq: Mapped[int] = mapped_column(default=0)
    subject: Mapped[str | None] = mapped_column(SafeString(80))
    kind: Mapped[str] = mapped_column(SafeString(40))
    at: Mapped[datetime]
    actor_id: Mapped[int | None] = mapped_column(ForeignKey("people.id", ondelete="SET NULL"), index=True)
    data: Mapped[dict[str, Any]] = mapped_column(JsonText())
