"""Whose an account is to look after: the staff of the courses that somebody came through, or administrators.

It follows from everything that somebody ever took part in, not from where they are enrolled now: otherwise whoever
enrols a former learner of others could reset their password, and erase what they did there.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, select

from grader.store.database import Store
from grader.store.tables import MembershipRow, PersonRow
from grader.store.tables.person import Role
from grader.store.upsert import upsert_statement


def note_memberships(
    connection: Connection, course_id: int, people: Sequence[int], *, role: Role, entrusted: bool
) -> None:
    """Remember that these people take part in a course; `entrusted`: see `grader.store.tables.membership`."""
    if not people:
        return
    said = {"taught": role is not Role.LEARNER, "entrusted": entrusted}
    # What was so once stays so; where nothing new is said, a column is set to what it is.
    update = tuple(name for name, value in said.items() if value) or ("course_id",)
    statement = upsert_statement(connection.dialect.name, MembershipRow, ("person_id", "course_id"), update)
    connection.execute(statement, [{"person_id": one, "course_id": course_id, **said} for one in people])


def may_entrust(connection: Connection, actor_id: int | None) -> bool:
    """Whether this actor may entrust a course with any account: administrators, and commands on our machine (None)."""
    if actor_id is None:
        return True
    role = connection.execute(select(PersonRow.role).where(PersonRow.id == actor_id)).scalar_one_or_none()
    return role is Role.ADMIN


def caring_courses(
    store: Store, people: Sequence[int], *, staff_too: bool = False
) -> dict[int, frozenset[int]]:
    """For each of these people the courses whose staff look after their account: whoever teaches all of them may.

    Empty where only administrators may: somebody who is more than a learner or (unless `staff_too`) ever was in a
    course, whom no course was entrusted with, or who is not there.
    """
    courses: dict[int, set[int]] = {}
    entrusted: set[int] = set()
    taught: set[int] = set()
    with store.read() as connection:
        rows = connection.execute(
            select(
                MembershipRow.person_id,
                MembershipRow.course_id,
                MembershipRow.taught,
                MembershipRow.entrusted,
            )
            .join(PersonRow, PersonRow.id == MembershipRow.person_id)
            .where(MembershipRow.person_id.in_(people), PersonRow.role == Role.LEARNER)
        )
        for row in rows:
            courses.setdefault(row.person_id, set()).add(row.course_id)
            if row.taught:
                taught.add(row.person_id)
            if row.entrusted:
                entrusted.add(row.person_id)
    cared_for = entrusted if staff_too else entrusted - taught
    return {one: frozenset(courses[one]) if one in cared_for else frozenset() for one in people}
