"""How a course has its attempts graded by people: with names or without, asked about again, in groups, compared.

What a course that says nothing has is in the defaults: whoever reads joins outwards. Terms and dates are elsewhere.
"""

from __future__ import annotations

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from grader.store.tables.base import Base, SafeString


class GradingRulesRow(Base):
    """Of one course.

    Attributes:
        anonymous: staff see pseudonyms instead of names, in all tasks that say nothing of their own.
        pseudonym_key: what the course's pseudonyms are made with; made with the row, and never shown.
        regrade_days: for so many days after feedback learners may ask for another look; None: they may not.
        forms_groups: learners make and join groups themselves; group_size: at most so many in each, None: any number.
        forum_url: where the course talks, an https address; None: nowhere.
    """

    __tablename__ = "grading_rules"

    course_id: Mapped[int] = mapped_column(ForeignKey("courses.id", ondelete="CASCADE"), primary_key=True)
    anonymous: Mapped[bool] = mapped_column(default=False)
    pseudonym_key: Mapped[str] = mapped_column(SafeString(64))
    regrade_days: Mapped[int | None]
    forms_groups: Mapped[bool] = mapped_column(default=False)
    group_size: Mapped[int | None]
    forum_url: Mapped[str | None] = mapped_column(SafeString(500))


class TaskGradingRow(Base):
    """Of one task of a course.

    Attributes:
        anonymous: as in the course's rules, for this task alone; None: as the course says.
        alone: groups do not matter here, everybody hands in for themselves.
        leaderboard: what learners are ranked by: `points`, or the name of a metric of grades; None: they are not.
        lowest_first: whether the least of that metric is the best, as of a time.
    """

    __tablename__ = "task_grading"

    course_task_id: Mapped[int] = mapped_column(
        ForeignKey("course_tasks.id", ondelete="CASCADE"), primary_key=True
    )
    anonymous: Mapped[bool | None]
    alone: Mapped[bool] = mapped_column(default=False)
    leaderboard: Mapped[str | None] = mapped_column(SafeString(80))
    lowest_first: Mapped[bool] = mapped_column(default=False)
