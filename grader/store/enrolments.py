"""Who takes part in a course, and moved due dates. Changes no task's own date."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, delete, insert, select, update

from grader.errors import UsageError
from grader.store.care import may_entrust, note_memberships
from grader.store.clock import database_now
from grader.store.database import Store
from grader.store.enrolment_details import NO_DETAILS, EnrolmentDetails
from grader.store.events import audit
from grader.store.standings import recompute_standings
from grader.store.tables import CourseRow, CourseTaskRow, EnrolmentRow, ExtensionRow, PersonRow
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


@dataclass(frozen=True, slots=True)
class StoredExtension:
    """A due date that was moved for one learner."""

    course_task_id: int
    person_id: int
    name: str
    due_at: datetime
    reason: str


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


def extend(
    store: Store,
    course_task_id: int,
    due_at: datetime,
    *,
    person_id: int | None = None,
    reason: str = "",
    actor_id: int | None,
) -> int:
    """Move a task's due date for one learner, or (person None) for all who take part now; returns for how many.

    For all, nobody loses: who has a later date already keeps it. What was handed in late before is so no longer.

    Raises:
        UsageError: there is no such task, or that person doesn't take part.
    """
    with store.write() as connection:
        course_id = connection.execute(
            select(CourseTaskRow.course_id).where(CourseTaskRow.id == course_task_id)
        ).scalar_one_or_none()
        if course_id is None:
            raise UsageError(f"there is no task {course_task_id} in any course")
        # Ordered and locked, so that two extensions at once cannot both find that there is none yet.
        chosen = (
            select(EnrolmentRow.id)
            .where(EnrolmentRow.course_id == course_id)
            .order_by(EnrolmentRow.id)
            .with_for_update()
        )
        chosen = chosen.where(
            EnrolmentRow.role == Role.LEARNER if person_id is None else EnrolmentRow.person_id == person_id
        )
        enrolments = tuple(connection.execute(chosen).scalars())
        if person_id is not None and not enrolments:
            raise UsageError(f"person {person_id} takes no part in this course")
        there = {
            row.enrolment_id: row.due_at
            for row in connection.execute(
                select(ExtensionRow.enrolment_id, ExtensionRow.due_at).where(
                    ExtensionRow.course_task_id == course_task_id
                )
            )
        }
        moved = [one for one in enrolments if person_id is not None or there.get(one, due_at) <= due_at]
        connection.execute(
            delete(ExtensionRow).where(
                ExtensionRow.course_task_id == course_task_id, ExtensionRow.enrolment_id.in_(moved)
            )
        )
        if moved:
            connection.execute(
                insert(ExtensionRow),
                [
                    {
                        "enrolment_id": one,
                        "course_task_id": course_task_id,
                        "due_at": due_at,
                        "reason": reason,
                    }
                    for one in moved
                ],
            )
            recompute_standings(connection, course_task_id)
        audit(
            connection,
            f"course:{course_id}",
            "due_date_moved",
            actor_id=actor_id,
            course_task_id=course_task_id,
            person_id=person_id,
            due_at=due_at.isoformat(),
            reason=reason,
        )
        return len(moved)


def extensions_of(store: Store, course_id: int) -> tuple[StoredExtension, ...]:
    """All moved due dates of a course, by task, then by name."""
    with store.read() as connection:
        rows = connection.execute(
            select(
                ExtensionRow.course_task_id,
                PersonRow.id,
                PersonRow.name,
                ExtensionRow.due_at,
                ExtensionRow.reason,
            )
            .join(EnrolmentRow, EnrolmentRow.id == ExtensionRow.enrolment_id)
            .join(PersonRow, PersonRow.id == EnrolmentRow.person_id)
            .join(CourseTaskRow, CourseTaskRow.id == ExtensionRow.course_task_id)
            .where(EnrolmentRow.course_id == course_id)
            .order_by(CourseTaskRow.position, PersonRow.name, PersonRow.id)
        )
        return tuple(StoredExtension(*row) for row in rows)


def retract_extension(store: Store, course_task_id: int, person_id: int, *, actor_id: int | None) -> bool:
    """Let the task's own due date hold again for one learner; False: theirs was not moved."""
    with store.write() as connection:
        course_id = connection.execute(
            select(CourseTaskRow.course_id).where(CourseTaskRow.id == course_task_id)
        ).scalar_one_or_none()
        theirs = select(EnrolmentRow.id).where(
            EnrolmentRow.course_id == course_id, EnrolmentRow.person_id == person_id
        )
        gone = connection.execute(
            delete(ExtensionRow).where(
                ExtensionRow.course_task_id == course_task_id, ExtensionRow.enrolment_id.in_(theirs)
            )
        ).rowcount
        if gone:
            recompute_standings(connection, course_task_id, [person_id])
            audit(
                connection,
                f"course:{course_id}",
                "extension_retracted",
                actor_id=actor_id,
                course_task_id=course_task_id,
                person_id=person_id,
            )
        return bool(gone)
