"""How long a course keeps what attempts leave, and what of which attempt is deleted by now. Grades stay in any case."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from grader.store.tables.base import Base


class RetentionRuleRow(Base):
    """A course's own rule, in days after an attempt ended; None: as long as the site keeps it."""

    __tablename__ = "retention_rules"

    course_id: Mapped[int] = mapped_column(ForeignKey("courses.id", ondelete="CASCADE"), primary_key=True)
    evidence_days: Mapped[int | None]
    scripts_days: Mapped[int | None]


class DeletedContentRow(Base):
    """What a rule deleted of an attempt, and when; None: it is kept.

    Attributes:
        evidence_at: its evidence and what its ranks printed.
        scripts_at: what was handed in, and the reports that quote it.
    """

    __tablename__ = "deleted_content"

    attempt_id: Mapped[int] = mapped_column(ForeignKey("attempts.id", ondelete="CASCADE"), primary_key=True)
    evidence_at: Mapped[datetime | None]
    scripts_at: Mapped[datetime | None]
