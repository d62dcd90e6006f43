"""A learner's request that a person looks at a grade again, and what came of it."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from sqlalchemy import ForeignKey, Index, text
from sqlalchemy.orm import Mapped, mapped_column

from grader.store.tables.base import Base, Id, one_of


class RequestDecision(StrEnum):
    """How a request ended."""

    KEPT = "kept"
    CHANGED = "changed"


class RegradeRequestRow(Base):
    """One request.

    Attributes:
        attempt_id: the attempt that it is about; root_id: what was handed in, of which it may be a regrade.
        person_id: who asks.
        decision, reply, actor_id, decided_at: None while it is open. `actor_id` None afterwards: they were erased.
    """

    __tablename__ = "regrade_requests"
    __table_args__ = (
        Index(
            "uq_regrade_requests_open",
            "root_id",
            unique=True,
            sqlite_where=text("decided_at IS NULL"),
            postgresql_where=text("decided_at IS NULL"),
        ),
        Index("ix_regrade_requests_root_id", "root_id"),
    )

    id: Mapped[Id]
    attempt_id: Mapped[int] = mapped_column(ForeignKey("attempts.id", ondelete="CASCADE"), index=True)
    root_id: Mapped[int] = mapped_column(ForeignKey("attempts.id", ondelete="CASCADE"))
    person_id: Mapped[int] = mapped_column(ForeignKey("people.id", ondelete="CASCADE"), index=True)
    text: Mapped[str]
    created_at: Mapped[datetime]
    decision: Mapped[RequestDecision | None] = mapped_column(one_of(RequestDecision))
    reply: Mapped[str | None]
    actor_id: Mapped[int | None] = mapped_column(ForeignKey("people.id", ondelete="SET NULL"), index=True)
    decided_at: Mapped[datetime | None]
