"""Roles by groups: what a provider of sign-on counts somebody to gives roles, and takes those that it gave.

Staff's own word stands: a role that staff gave is never taken, and where staff changes one afterwards, that counts as
theirs from then on.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, Row, delete, insert, select, update

from grader.store.courses.enrolments import enrol_within
from grader.store.events import audit
from grader.store.tables import CourseRow, EnrolmentRow, GroupRoleRow, PersonRow
from grader.store.tables.person import Role

_RANKS = (None, Role.LEARNER, Role.OBSERVER, Role.ASSISTANT, Role.INSTRUCTOR, Role.ADMIN)
_log = logging.getLogger("grader.store")


@dataclass(frozen=True, slots=True)
class CourseRole:
    """A role in the course of that short name; section: the one that they belong to there, None: none is said."""

    course: str
    role: Role
    section: str | None = None


@dataclass(frozen=True, slots=True)
class GroupRoles:
    """All that somebody's groups give; site None: nothing on the whole site."""

    site: Role | None = None
    courses: tuple[CourseRole, ...] = ()


def apply_group_roles(connection: Connection, person_id: int, issuer: str, given: GroupRoles) -> None:
    """Give somebody the roles that their groups at this issuer give now, and take those that they gave before."""
    current = connection.execute(
        select(PersonRow.role).where(PersonRow.id == person_id).with_for_update()
    ).scalar_one()
    if current is Role.CI:
        return
    rows = connection.execute(select(GroupRoleRow).where(GroupRoleRow.person_id == person_id)).all()
    on_site = [row for row in rows if row.course_id is None]
    role = _settle(connection, person_id, _Place(issuer, None, current, given.site), on_site)
    if role is not None and role is not current:
        connection.execute(
            update(PersonRow)
            .where(PersonRow.id == person_id)
            .values(role=role, session_epoch=PersonRow.session_epoch + 1)
        )
        audit(
            connection, f"person:{person_id}", "role_changed", actor_id=None, role=role, by_groups_of=issuer
        )
    wanted = _courses(connection, given.courses)
    theirs = {row.course_id for row in rows if row.course_id is not None and row.issuer == issuer}
    for course_id in sorted({*wanted, *theirs}):
        in_course = [row for row in rows if row.course_id == course_id]
        _settle_course(connection, person_id, issuer, course_id, (wanted.get(course_id), in_course))


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a role is settled: what somebody has there now, and what the groups of the issuer give."""

    issuer: str
    course_id: int | None
    current: Role | None
    given: Role | None


def _settle(
    connection: Connection, person_id: int, place: _Place, rows: Sequence[Row[GroupRoleRow]]
) -> Role | None:
    """The role that holds in one place from now on; what groups give there is written down."""
    base = _role(rows[0].base_role) if rows else place.current
    if rows and place.current is not _highest([base, *(row.role for row in rows)]):
        # Somebody has changed it since: that is what holds without any group.
        connection.execute(delete(GroupRoleRow).where(GroupRoleRow.id.in_([row.id for row in rows])))
        base, rows = place.current, []
    own = [row.id for row in rows if row.issuer == place.issuer]
    if own:
        connection.execute(delete(GroupRoleRow).where(GroupRoleRow.id.in_(own)))
    if place.given is not None and _RANKS.index(place.given) > _RANKS.index(base):
        connection.execute(
            insert(GroupRoleRow).values(
                person_id=person_id,
                issuer=place.issuer,
                course_id=place.course_id,
                role=place.given,
                base_role=base,
            )
        )
    return _highest([base, place.given, *(row.role for row in rows if row.issuer != place.issuer)])


def _settle_course(
    connection: Connection,
    person_id: int,
    issuer: str,
    course_id: int,
    said: tuple[CourseRole | None, Sequence[Row[GroupRoleRow]]],
) -> None:
    wanted, rows = said
    here = (EnrolmentRow.course_id == course_id, EnrolmentRow.person_id == person_id)
    there = connection.execute(select(EnrolmentRow.role).where(*here)).scalar_one_or_none()
    given = None if wanted is None else wanted.role
    role = _settle(connection, person_id, _Place(issuer, course_id, there, given), rows)
    if role is None and there is not None:
        connection.execute(delete(EnrolmentRow).where(*here))
        audit(
            connection, f"course:{course_id}", "left", actor_id=None, person_id=person_id, by_groups_of=issuer
        )
    elif role is not None and role is not there:
        enrol_within(connection, course_id, person_id, role, actor_id=None)
    if wanted is not None and wanted.section is not None and role is given:
        connection.execute(update(EnrolmentRow).where(*here).values(section=wanted.section))


def _courses(connection: Connection, given: Iterable[CourseRole]) -> dict[int, CourseRole]:
    """The highest role that is given in each course; a course that is not there is passed over."""
    wanted: dict[str, CourseRole] = {}
    for one in given:
        before = wanted.get(one.course)
        if before is None or _RANKS.index(one.role) > _RANKS.index(before.role):
            wanted[one.course] = one
    found = connection.execute(
        select(CourseRow.name, CourseRow.id).where(CourseRow.name.in_(list(wanted)))
    ).all()
    missing = sorted(set(wanted) - {row.name for row in found})
    if missing:
        _log.warning("groups lead into courses that are not there: %s", ", ".join(missing))
    return {row.id: wanted[row.name] for row in found}


def _role(value: str | None) -> Role | None:
    return None if value is None else Role(value)


def _highest(roles: Iterable[Role | None]) -> Role | None:
    return max(roles, key=_RANKS.index)
