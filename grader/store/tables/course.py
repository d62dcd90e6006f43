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
