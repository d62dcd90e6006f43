"""A participant's section and the id that another system knows them by: changing them, for one or many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, select, update

from grader.store.database import Store
from grader.store.events import audit
from grader.store.tables import EnrolmentRow


@dataclass(frozen=True, slots=True)
class EnrolmentDetails:
    """See `grader.store.tables.enrolment`."""

    section: str | None = None
    external_id: str | None = None


NO_DETAILS = EnrolmentDetails()


def set_details(
    store: Store, course_id: int, wanted: Mapping[int, EnrolmentDetails], *, actor_id: int | None
) -> int:
    """Give these participants another section and id, by person; returns how many are changed."""
    with store.write() as connection:
        return len(set_details_within(connection, course_id, wanted, actor_id=actor_id))


def set_section(
    store: Store, course_id: int, person_ids: Sequence[int], section: str | None, *, actor_id: int | None
) -> int:
    """Put these participants into a section, or (None) into none; returns how many are changed."""
    with store.write() as connection:
        there = _details(connection, course_id, person_ids)
        wanted = {person: EnrolmentDetails(section, details.external_id) for person, details in there.items()}
        return len(set_details_within(connection, course_id, wanted, actor_id=actor_id))


def set_details_within(
    connection: Connection,
    course_id: int,
    wanted: Mapping[int, EnrolmentDetails],
    *,
    actor_id: int | None,
) -> set[int]:
    """As `set_details`, within a transaction of the caller's; returns who is changed."""
    there = _details(connection, course_id, list(wanted))
    changed = {person: wanted[person] for person, details in there.items() if wanted[person] != details}
    if changed:
        connection.execute(
            update(EnrolmentRow)
            .where(EnrolmentRow.course_id == course_id, EnrolmentRow.person_id == bindparam("person"))
            .values(section=bindparam("new_section"), external_id=bindparam("new_id")),
            [
                {"person": person, "new_section": one.section, "new_id": one.external_id}
                for person, one in changed.items()
            ],
        )
    for person, one in changed.items():
        audit(
            connection,
            f"course:{course_id}",
            "enrolment_changed",
            actor_id=actor_id,
            person_id=person,
            section=one.section,
            external_id=one.external_id,
        )
    return set(changed)


def _details(
    connection: Connection, course_id: int, person_ids: Sequence[int]
) -> dict[int, EnrolmentDetails]:
    rows = connection.execute(
        select(EnrolmentRow.person_id, EnrolmentRow.section, EnrolmentRow.external_id)
        .where(EnrolmentRow.course_id == course_id, EnrolmentRow.person_id.in_(person_ids))
        .order_by(EnrolmentRow.id)
        .with_for_update()
    )
    return {row.person_id: EnrolmentDetails(row.section, row.external_id) for row in rows}
