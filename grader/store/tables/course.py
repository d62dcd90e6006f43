"""A course: who learns what together. Holds no task and nobody itself."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy.orm import Mapped, mapped_column

from grader.store.tables.base import Base, Id, SafeString


class CourseRow(Base):
    """A course.

    Attributes:
        name: unique short name, as it stands in addresses.
        about: what the course says of itself; None: what its course file says.
        closed_at: nothing is handed in any more.
        source: where it came from, as people read it; None: from the folder of tasks, whose changes are offered to it.
        time_zone: IANA name of the zone in which staff writes dates, None for UTC. Dates are kept in UTC.
        draft_since: since when it is prepared; only its staff sees it until it is published, which empties this.
        archived_at: since when it can be read only.
        deleted_at: since when nothing of it is left but its title, which certificates name.
        file_name: what its course file calls it, where it is called otherwise here; None: the same.
        late_days_total, late_days_per_task: late days that each learner has, in all and at most for one task; None:
            the course gives none, or sets no limit per task.
    """

    __tablename__ = "courses"

    id: Mapped[Id]
    name: Mapped[str] = mapped_column(SafeString(120), unique=True)
    title: Mapped[str] = mapped_column(SafeString(200))
    created_at: Mapped[datetime]
    closed_at: Mapped[datetime | None]
    time_zone: Mapped[str | None] = mapped_column(SafeString(64))
    about: Mapped[str | None]
    source: Mapped[str | None]
    draft_since: Mapped[datetime | None]
    archived_at: Mapped[datetime | None]
    deleted_at: Mapped[datetime | None]
    file_name: Mapped[str | None] = mapped_column(SafeString(120))
    late_days_total: Mapped[int | None]
    late_days_per_task: Mapped[int | None]
