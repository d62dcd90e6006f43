"""A task as a course sets it: pinned version, order, weight, dates and limits. The task itself lies in its folder."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from sqlalchemy import ForeignKey, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from grader.store.tables.base import Base, Digest, Id, SafeString, one_of


class LatePolicy(StrEnum):
    """What happens after the due date."""

    CLOSED = "closed"
    """Nothing is taken."""
    ACCEPTED = "accepted"
    """Taken, marked, and worth the same."""
    REDUCED = "reduced"
    """Taken, and each day begun costs `late_loss` of the points."""


class CourseTaskRow(Base):
    """One task of one course.

    Attributes:
        task, version: name and pinned version of the task; offered_version: a newer one that waits for the staff.
        profile, need: where it runs (`cpu`, `gpu`) and what an attempt needs (`cpu`, `gpu1`, `gpu2`, …).
        position: order in the course; weight: share in the course's total; required: part of the certificate.
        opens_at, due_at: None: open from the start, never due.
        late_policy, late_loss, late_days: what comes after `due_at`: share lost per day begun (0–1), and for how many
            days something is taken at all (None: for good).
        max_per_day, max_total, max_concurrent: attempts per learner, None: as many as they like. A day is 24 hours.
        hidden_until_due: learners see that they were judged, and how only after the due date.
        draft_since: since when it is prepared; learners see it once it is published, which empties this.
        withdrawn_at: since when the course does without it: learners see it no more, what was judged stays.
        grace_minutes: for so long after `due_at` what comes is not late yet, None: not at all.
        exam_minutes: it is an exam, and each learner has so long from their first look; None: it is none.
        released_at: since when learners are told how their exam went; None: not yet.
    """

    __tablename__ = "course_tasks"
    __table_args__ = (UniqueConstraint("course_id", "task", "profile"),)

    id: Mapped[Id]
    course_id: Mapped[int] = mapped_column(ForeignKey("courses.id", ondelete="CASCADE"))
    task: Mapped[str] = mapped_column(SafeString(120))
    version: Mapped[Digest]
    title: Mapped[str] = mapped_column(SafeString(200))
    profile: Mapped[str] = mapped_column(SafeString(40))
    need: Mapped[str] = mapped_column(SafeString(16))
    position: Mapped[int]
    weight: Mapped[float] = mapped_column(default=1.0)
    required: Mapped[bool] = mapped_column(default=True)
    opens_at: Mapped[datetime | None]
    due_at: Mapped[datetime | None]
    late_policy: Mapped[LatePolicy] = mapped_column(one_of(LatePolicy), default=LatePolicy.CLOSED)
    late_loss: Mapped[float] = mapped_column(default=0.0)
    late_days: Mapped[int | None]
    max_per_day: Mapped[int | None]
    max_total: Mapped[int | None]
    max_concurrent: Mapped[int | None]
    hidden_until_due: Mapped[bool] = mapped_column(default=False)
    withdrawn_at: Mapped[datetime | None]
    draft_since: Mapped[datetime | None]
    offered_version: Mapped[str | None] = mapped_column(String(64))
    grace_minutes: Mapped[int | None]
    exam_minutes: Mapped[int | None]
    released_at: Mapped[datetime | None]
