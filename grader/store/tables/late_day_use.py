"""Late days that attempts use, ready for whoever asks what an attempt counts as.

Follows from grades, dates and the course's late days, and is written with the standings; never a source itself.
"""

from __future__ import annotations

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from grader.store.tables.base import Base


class LateDayUseRow(Base):
    """How many late days the attempt that was handed in takes from that learner, if it counts; none: no row."""

    __tablename__ = "late_day_uses"

    attempt_id: Mapped[int] = mapped_column(ForeignKey("attempts.id", ondelete="CASCADE"), primary_key=True)
    person_id: Mapped[int] = mapped_column(
        ForeignKey("people.id", ondelete="CASCADE"), primary_key=True, index=True
    )
    days: Mapped[int]
