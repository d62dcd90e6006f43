"""Who takes part in a course. Who has more time or attempts there is `extensions`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from grader.errors import UsageError
from grader.store.clock import database_now
from grader.store.courses.enrolment_details import NO_DETAILS, EnrolmentDetails
from grader.store.database import Store
from grader.store.events import audit
from grader.store.people.care import may_entrust, note_memberships
from grader.store.tables import CourseRow, EnrolmentRow, GroupRoleRow, PersonRow
from grader.store.tables.person import COURSE_ROLES, Role


@dataclass(frozen=True, slots=True)
class Participant:
    """Somebody in a course; `signed_in_at`: last with a password, None: never."""

    enrolment_id: int
    person_id: int
    login: str
    name: str
    role: Role
    section: str | None
    external_id: str | None
    email: str | None
    signed_in_at: datetime | None


def enrol(
    store: Store,
    course_id: int,
    person_id: int,
    role: Role = Role.LEARNER,
    *,
    details: EnrolmentDetails = NO_DETAILS,
    actor_id: int | None = None,
) -> int:
    """Let somebody take part and return the enrolment's id; once more changes nothing but the role.

    `details`: of whoever takes no part yet.
    """
    with store.write() as connection:
        # From now on it is so because somebody said so, whatever groups say.
        connection.execute(
            delete(GroupRoleRow).where(
                GroupRoleRow.person_id == person_id, GroupRoleRow.course_id == course_id
            )
        )
        return enrol_within(connection, course_id, person_id, role, details=details, actor_id=actor_id)


def enrol_within(
    connection: Connection,
    course_id: int,
    person_id: int,
    role: Role,
    *,
    details: EnrolmentDetails = NO_DETAILS,
    actor_id: int | None,
) -> int:
    """As `enrol`, within a transaction of the caller's.

    Raises:
        UsageError: there is no such course, or the role is none of a course.
    """
    if role not in COURSE_ROLES:
        raise UsageError(
            f"in a course one is {', '.join(COURSE_ROLES[:-1])} or {COURSE_ROLES[-1]}, not {role}"
        )
    # Locks the person's row: of two invitations redeemed at once, the second finds the enrolment.
    connection.execute(select(PersonRow.id).where(PersonRow.id == person_id).with_for_update(key_share=True))
    if connection.execute(select(CourseRow.id).where(CourseRow.id == course_id)).scalar_one_or_none() is None:
        raise UsageError(f"there is no course {course_id}")
    there = connection.execute(
        select(EnrolmentRow.id, EnrolmentRow.role).where(
            EnrolmentRow.course_id == course_id, EnrolmentRow.person_id == person_id
        )
    ).one_or_none()
    if there is not None and there.role is role:
        return int(there.id)
    if there is not None:
        connection.execute(update(EnrolmentRow).where(EnrolmentRow.id == there.id).values(role=role))
        enrolment_id = int(there.id)
    else:
        enrolment_id = connection.execute(
            insert(EnrolmentRow)
            .values(
                course_id=course_id,
                person_id=person_id,
                role=role,
                section=details.section,
                external_id=details.external_id,
                created_at=database_now(),
            )
            .returning(EnrolmentRow.id)
        ).scalar_one()
    entrusted = actor_id == person_id or may_entrust(connection, actor_id)
    note_memberships(connection, course_id, [person_id], role=role, entrusted=entrusted)
    audit(connection, f"course:{course_id}", "enrolled", actor_id=actor_id, person_id=person_id, role=role)
    return enrolment_id


def leave(store: Store, course_id: int, person_id: int, *, actor_id: int | None) -> bool:
    """End an enrolment; what was handed in stays until it is erased. False: there was none."""
    with store.write() as connection:
        gone = connection.execute(
            delete(EnrolmentRow).where(
                EnrolmentRow.course_id == course_id, EnrolmentRow.person_id == person_id
            )
        ).rowcount
        if gone:
            audit(connection, f"course:{course_id}", "left", actor_id=actor_id, person_id=person_id)
        return bool(gone)


def participants(store: Store, course_id: int) -> tuple[Participant, ...]:
    """Everybody in a course, by name."""
    with store.read() as connection:
        rows = connection.execute(
            select(
                EnrolmentRow.id,
                PersonRow.id,
                PersonRow.login,
                PersonRow.name,
                EnrolmentRow.role,
                EnrolmentRow.section,
                EnrolmentRow.external_id,
                PersonRow.email,
                PersonRow.signed_in_at,
            )
            .join(PersonRow, PersonRow.id == EnrolmentRow.person_id)
            .where(EnrolmentRow.course_id == course_id)
            .order_by(PersonRow.name, PersonRow.id)
        )
        return tuple(Participant(*row) for row in rows)


def names_in(store: Store, course_id: int) -> dict[int, str]:
    """What everybody in a course is called, by their number, in the order of the names."""
    with store.read() as connection:
        rows = connection.execute(_NAMES, {"course": course_id}).all()
    return {person_id: name for person_id, name in rows}  # noqa: C416 - rows are no pairs for mypy


_NAMES = (
    select(PersonRow.id, PersonRow.name)
    .join(EnrolmentRow, EnrolmentRow.person_id == PersonRow.id)
    .where(EnrolmentRow.course_id == bindparam("course"))
    .order_by(PersonRow.name, PersonRow.id)
)


def external_ids(store: Store, course_id: int) -> dict[str, int]:
    """What another system calls the people of a course → person; those that it calls nothing are not in it."""
    with store.read() as connection:
        rows = connection.execute(
            select(EnrolmentRow.external_id, EnrolmentRow.person_id).where(
                EnrolmentRow.course_id == course_id, EnrolmentRow.external_id.is_not(None)
            )
        )
        return {str(row.external_id): row.person_id for row in rows}
