"""The zone in which a course's staff writes dates. Dates that are set are moments, and stay what they are."""

from __future__ import annotations

from functools import cache
from zoneinfo import available_timezones

from sqlalchemy import update

from grader.errors import UsageError
from grader.store.courses.courses import DEFAULT_ZONE
from grader.store.database import Store
from grader.store.events import audit
from grader.store.tables import CourseRow


@cache
def time_zones() -> tuple[str, ...]:
    """All that a course can have, UTC first, then by name."""
    return (DEFAULT_ZONE, *sorted(available_timezones() - {DEFAULT_ZONE}))


def set_time_zone(store: Store, course_id: int, name: str, *, actor_id: int | None) -> None:
    """Let the course's staff write dates in that zone; dates that are set stay the moments that they are.

    Raises:
        UsageError: there is no such zone.
    """
    if name not in time_zones():
        raise UsageError(f"there is no time zone {name!r}")
    with store.write() as connection:
        connection.execute(
            update(CourseRow)
            .where(CourseRow.id == course_id)
            .values(time_zone=None if name == DEFAULT_ZONE else name)
        )
        audit(connection, f"course:{course_id}", "time_zone_set", actor_id=actor_id, time_zone=name)
