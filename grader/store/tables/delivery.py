"""What is to reach somebody outside: mails, webhooks, grades for other systems. The sending itself is elsewhere."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import ForeignKey, Index, String, text
from sqlalchemy.orm import Mapped, mapped_column

from grader.store.tables.base import Base, Id, JsonText, SafeString, one_of


class DeliveryState(StrEnum):
    """How far a delivery is."""

    WAITING = "waiting"
    DELIVERED = "delivered"
    GIVEN_UP = "given_up"


_WAITING = text("state = 'waiting'")


class DeliveryRow(Base):
    """One message to one receiver.

    Attributes:
        channel: by which plug-in it goes: `mail`, `webhook`, `lti_grade`; receiver: whom it reaches there.
        topic: what it is about; waiting ones of one receiver and topic may be told together.
        payload: what the channel makes the message of.
        key: the same key is queued once, whoever says it again.
        due_at: not tried before; started_at: since when it is tried, from which it is reckoned when to give up.
        taken_until: somebody is delivering it until then; afterwards it may be taken again. tries: how often it was.
        joined_id: the delivery that it is told together with.
        answer: what the other side said last, or why there was nothing to say.
    """

    __tablename__ = "deliveries"
    __table_args__ = (
        Index("ix_deliveries_due", "channel", "due_at", sqlite_where=_WAITING, postgresql_where=_WAITING),
        Index(
            "ix_deliveries_receiver", "channel", "receiver", sqlite_where=_WAITING, postgresql_where=_WAITING
        ),
        Index("ix_deliveries_course", "course_id", "channel", "id"),
    )

    id: Mapped[Id]
    channel: Mapped[str] = mapped_column(SafeString(40))
    receiver: Mapped[str] = mapped_column(SafeString(300))
    topic: Mapped[str] = mapped_column(SafeString(80))
    payload: Mapped[dict[str, Any]] = mapped_column(JsonText())
    key: Mapped[str] = mapped_column(String(200), unique=True)
    course_id: Mapped[int | None] = mapped_column(ForeignKey("courses.id", ondelete="CASCADE"))
    created_at: Mapped[datetime]
    due_at: Mapped[datetime]
    started_at: Mapped[datetime]
    state: Mapped[DeliveryState] = mapped_column(one_of(DeliveryState), default=DeliveryState.WAITING)
    taken_until: Mapped[datetime | None]
    tries: Mapped[int] = mapped_column(default=0)
    joined_id: Mapped[int | None] = mapped_column(ForeignKey("deliveries.id", ondelete="CASCADE"), index=True)
    tried_at: Mapped[datetime | None]
    answer: Mapped[str | None] = mapped_column(SafeString(500))


class DeliveryChannelRow(Base):
    """What the processes that deliver say of a channel, for all others to read.

    Attributes:
        problem: why nothing goes that way: it is not set up, or the other side is away; None: it is well.
        set_up: whether anything is to be queued for it at all.
    """

    __tablename__ = "delivery_channels"

    name: Mapped[str] = mapped_column(String(40), primary_key=True)
    set_up: Mapped[bool]
    problem: Mapped[str | None] = mapped_column(SafeString(500))
    noted_at: Mapped[datetime]
