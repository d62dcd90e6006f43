"""Who takes attempts from the queue, whose turn it is, and what is held shut. The queue itself is `attempts`."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column

from grader.store.tables.attempt import Lane
from grader.store.tables.base import Base, JsonText, SafeString, one_of


class WorkerRow(Base):
    """A worker that has been seen.

    Attributes:
        needs: what it can take (`cpu`, `gpu1`, …); slots: how many at once.
        seen_at: last sign of life; draining: it is to finish what it has and take nothing more.
        host: what it said of its host then, see `grader.store.queue.queue.WorkerHost`; None: nothing.
    """

    __tablename__ = "workers"

    name: Mapped[str] = mapped_column(SafeString(120), primary_key=True)
    needs: Mapped[list[str]] = mapped_column(JsonText())
    slots: Mapped[int]
    seen_at: Mapped[datetime]
    draining: Mapped[bool] = mapped_column(default=False)
    host: Mapped[dict[str, int | None] | None] = mapped_column(JsonText())


class TurnRow(Base):
    """When a person was last served in a lane, as a number that grows with every claim there."""

    __tablename__ = "turns"
    __table_args__ = (Index("ix_turns_last", "lane", "turn"),)

    person_id: Mapped[int] = mapped_column(ForeignKey("people.id", ondelete="CASCADE"), primary_key=True)
    lane: Mapped[Lane] = mapped_column(one_of(Lane), primary_key=True)
    turn: Mapped[int]


class GateRow(Base):
    """What is paused: a lane, a need, or everything (`*`), by whom and why."""

    __tablename__ = "gates"

    name: Mapped[str] = mapped_column(SafeString(40), primary_key=True)
    since: Mapped[datetime]
    actor_id: Mapped[int | None] = mapped_column(ForeignKey("people.id", ondelete="SET NULL"), index=True)
    reason: Mapped[str]
