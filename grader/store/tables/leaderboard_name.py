"""Under which name a learner wants to be seen on a course's leaderboards. Who has none is on none of them."""

from __future__ import annotations

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from grader.store.tables.base import Base, SafeString


class LeaderboardNameRow(Base):
    """Of one learner in one course."""

    __tablename__ = "leaderboard_names"

    course_id: Mapped[int] = mapped_column(ForeignKey("courses.id", ondelete="CASCADE"), primary_key=True)
    person_id: Mapped[int] = mapped_column(
        ForeignKey("people.id", ondelete="CASCADE"), primary_key=True, index=True
    )
    name: Mapped[str] = mapped_column(SafeString(40))
