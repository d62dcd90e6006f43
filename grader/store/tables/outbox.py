"""Messages that a transaction wants sent once it has happened. The sending itself is elsewhere."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey, Index, text
from sqlalchemy.orm import Mapped, mapped_column

from grader.store.tables.base import Base, Id, SafeString


class OutboxRow(Base):
    """One message: a hint that an attempt waits (`attempt`), or that one failed for good (`judge_error`).

    Attributes:
        taken_until: somebody is sending it until then; afterwards it may be taken again.
        sent_at: it was handed to the broker; None again when it seems to be lost.
        tries: how often it was taken.
    """

    __tablename__ = "outbox"
    __table_args__ = (
        Index(
            "ix_outbox_unsent",
            "id",
            sqlite_where=text("sent_at IS NULL"),
            postgresql_where=text("sent_at IS NULL"),
        ),
    )

    id: Mapped[Id]
    topic: Mapped[str] = mapped_column(SafeString(40))
    attempt_id: Mapped[int] = mapped_column(ForeignKey("attempts.id", ondelete="CASCADE"), index=True)
    created_at: Mapped[datetime]
    taken_until: Mapped[datetime | None]
    sent_at: Mapped[datetime | None]
    tries: Mapped[int] = mapped_column(default=0)
