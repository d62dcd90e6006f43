"""Other programs that a course tells of verdicts and grades. What was sent to them are deliveries."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from sqlalchemy import ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column

from grader.store.tables.base import Base, Id, JsonText, SafeString


class WebhookEvent(StrEnum):
    """What a receiver may be told."""

    ATTEMPT_JUDGED = "attempt.judged"
    GRADE_CHANGED = "grade.changed"
    TEST = "test"
    """Sent by a button alone."""


class WebhookRow(Base):
    """One receiver.

    Attributes:
        events: what it is told, of `WebhookEvent`.
        salt: with the service's own secret it makes the receiver's, which is kept nowhere.
        failed_since: since when nothing reached it; None: the last one did. num_failures: how many tries since.
        disabled_at: it is told nothing any more; problem: why.
    """

    __tablename__ = "webhooks"

    id: Mapped[Id]
    course_id: Mapped[int] = mapped_column(ForeignKey("courses.id", ondelete="CASCADE"), index=True)
    url: Mapped[str] = mapped_column(SafeString(1000))
    events: Mapped[list[str]] = mapped_column(JsonText())
    salt: Mapped[str] = mapped_column(String(64))
    created_at: Mapped[datetime]
    num_failures: Mapped[int] = mapped_column(default=0)
    failed_since: Mapped[datetime | None]
    disabled_at: Mapped[datetime | None]
    problem: Mapped[str | None] = mapped_column(SafeString(500))
