"""Where a person stands in a task: the attempt that counts, ready for the gradebook.

Follows from grades and overrides alone and is written again whenever one of them changes; never a source itself.
"""

from __future__ import annotations

from sqlalchemy import ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column

from grader.model.grade import Verdict
from grader.store.tables.base import Base, one_of


class StandingRow(Base):
    """One cell of a gradebook.

    Attributes:
        attempt_id: the attempt that counts; points, max_points, verdict: what it counts as, lateness and override in;
            one that is held has no points until it is decided.
        late_days, overridden: why it may differ from what was judged.
    """

    __tablename__ = "standings"
    __table_args__ = (
        Index("ix_standings_of_person", "person_id"),
        Index("ix_standings_attempt_id", "attempt_id"),
    )

    course_task_id: Mapped[int] = mapped_column(
        ForeignKey("course_tasks.id", ondelete="CASCADE"), primary_key=True
    )
    person_id: Mapped[int] = mapped_column(ForeignKey("people.id", ondelete="CASCADE"), primary_key=True)
    attempt_id: Mapped[int] = mapped_column(ForeignKey("attempts.id", ondelete="CASCADE"))
    points: Mapped[float]
    max_points: Mapped[float]
    verdict: Mapped[Verdict] = mapped_column(one_of(Verdict))
    late_days: Mapped[int]
    overridden: Mapped[bool]
