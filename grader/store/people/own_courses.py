"""The courses of somebody, with what they are in each: what decides at every request what they may do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, or_, select

from grader.store.database import Store
from grader.store.tables import CourseRow, EnrolmentRow
from grader.store.tables.person import Role


@dataclass(frozen=True, slots=True)
class OwnCourse:
    """A course as one of its participants sees it; one that is still a draft is there for its staff alone."""

    course_id: int
    name: str
    title: str
    role: Role
    section: str | None = None
    draft: bool = False
    archived: bool = False


def courses_of(store: Store, person_id: int) -> tuple[OwnCourse, ...]:
    """The courses that somebody takes part in, by name."""
    with store.read() as connection:
        return courses_of_each(connection, [person_id])[person_id]


def courses_of_each(connection: Connection, person_ids: Sequence[int]) -> dict[int, tuple[OwnCourse, ...]]:
    """The same of several people, within a transaction of the caller's."""
    found: dict[int, list[OwnCourse]] = {one: [] for one in person_ids}
    for row in connection.execute(_OWN, {"people": list(found)}):
        found[row.person_id].append(OwnCourse(*row[1:]))
    return {one: tuple(courses) for one, courses in found.items()}


# Made once: every request asks for it.
_OWN = (
    select(
        EnrolmentRow.person_id,
        CourseRow.id,
        CourseRow.name,
        CourseRow.title,
        EnrolmentRow.role,
        EnrolmentRow.section,
        CourseRow.draft_since.is_not(None),
        CourseRow.archived_at.is_not(None),
    )
    .join(EnrolmentRow, EnrolmentRow.course_id == CourseRow.id)
    .where(
        EnrolmentRow.person_id.in_(bindparam("people", expanding=True)),
        or_(CourseRow.draft_since.is_(None), EnrolmentRow.role != Role.LEARNER),
    )
    .order_by(CourseRow.name)
)
