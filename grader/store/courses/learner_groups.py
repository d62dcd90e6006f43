"""Who is in which group of a course now: made by staff, from a list, or by learners with a code where they may.

What was handed in before is not touched: for whom it counts stands in `credits`.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, and_, delete, func, insert, select
from sqlalchemy.exc import IntegrityError

from grader.errors import UsageError
from grader.store.clock import database_now
from grader.store.courses.grading_rules import read_grading_rules
from grader.store.database import Store
from grader.store.events import audit
from grader.store.tables import CourseRow, EnrolmentRow, GroupMemberRow, LearnerGroupRow, PersonRow
from grader.store.tables.person import Role

_MOST_NAME = 120


@dataclass(frozen=True, slots=True)
class GroupMember:
    """Somebody in a group."""

    person_id: int
    login: str
    name: str


@dataclass(frozen=True, slots=True)
class LearnerGroup:
    """A group with its members, by name."""

    id: int
    name: str
    join_code: str
    members: tuple[GroupMember, ...]


def groups_of(store: Store, course_id: int) -> tuple[LearnerGroup, ...]:
    """The groups of a course, by name."""
    with store.read() as connection:
        rows = connection.execute(
            select(
                LearnerGroupRow.id,
                LearnerGroupRow.name,
                LearnerGroupRow.join_code,
                PersonRow.id.label("person_id"),
                PersonRow.login,
                PersonRow.name.label("person"),
            )
            .outerjoin(GroupMemberRow, GroupMemberRow.group_id == LearnerGroupRow.id)
            .outerjoin(EnrolmentRow, _LEARNS)
            .outerjoin(PersonRow, PersonRow.id == EnrolmentRow.person_id)
            .where(LearnerGroupRow.course_id == course_id)
            .order_by(LearnerGroupRow.name, LearnerGroupRow.id, PersonRow.name, PersonRow.id)
        ).all()
    members: dict[int, list[GroupMember]] = {}
    for row in rows:
        found = members.setdefault(row.id, [])
        if row.person_id is not None:
            found.append(GroupMember(row.person_id, row.login, row.person))
    named = {row.id: row for row in rows}
    return tuple(
        LearnerGroup(row.id, row.name, row.join_code, tuple(members[row.id])) for row in named.values()
    )


def group_of(store: Store, course_id: int, person_id: int) -> LearnerGroup | None:
    """The group of somebody, or None."""
    return next(
        (
            group
            for group in groups_of(store, course_id)
            if any(one.person_id == person_id for one in group.members)
        ),
        None,
    )


def make_group(store: Store, course_id: int, name: str, *, actor_id: int) -> int:
    """Make an empty group and return its number.

    Raises:
        UsageError: it has no name, or another one has it.
    """
    try:
        with store.write() as connection:
            return _make(connection, course_id, name, actor_id)
    except IntegrityError:
        raise UsageError(f"there is a group named {name.strip()} already") from None


def form_group(store: Store, course_id: int, name: str, *, person_id: int) -> int:
    """Make a group of one's own and be its first member, where the course lets learners do that.

    Raises:
        UsageError: they may not, they are in a group, or see `make_group`.
    """
    try:
        with store.write() as connection:
            _may_form(connection, course_id, person_id)
            group_id = _make(connection, course_id, name, person_id)
            _put(connection, course_id, group_id, person_id, person_id)
            return group_id
    except IntegrityError:
        raise UsageError(f"there is a group named {name.strip()} already") from None


def join_group(store: Store, course_id: int, code: str, *, person_id: int) -> str:
    """Join the group of that code, and return its name.

    Raises:
        UsageError: no group of the course has that code, it is full, they are in a group, or learners may not join.
    """
    with store.write() as connection:
        rules = _may_form(connection, course_id, person_id)
        # Locked: of two who come for the last place the second finds it taken.
        found = connection.execute(
            select(LearnerGroupRow.id, LearnerGroupRow.name)
            .where(LearnerGroupRow.course_id == course_id, LearnerGroupRow.join_code == code.strip().upper())
            .with_for_update()
        ).one_or_none()
        if found is None:
            raise UsageError("no group of this course has that code")
        if rules is not None and _size(connection, found.id) >= rules:
            raise UsageError(f"this group is full: there are at most {rules} in one")
        _put(connection, course_id, found.id, person_id, person_id)
        return str(found.name)


def leave_group(store: Store, course_id: int, *, person_id: int) -> None:
    """Leave one's group; what it handed in until now counts on.

    Raises:
        UsageError: learners of this course do not choose their groups.
    """
    with store.write() as connection:
        if not read_grading_rules(connection, course_id).forms_groups:
            raise UsageError("the groups of this course are made by its instructors")
        _take_out(connection, course_id, person_id, person_id)


def put_into_group(store: Store, course_id: int, group_id: int, person_id: int, *, actor_id: int) -> None:
    """Put a learner into a group, out of the one that they are in.

    Raises:
        UsageError: there is no such group, or they do not learn in the course.
    """
    with store.write() as connection:
        _put(connection, course_id, group_id, person_id, actor_id)


def take_out_of_group(store: Store, course_id: int, person_id: int, *, actor_id: int) -> None:
    """Take a learner out of their group, if they are in one."""
    with store.write() as connection:
        _take_out(connection, course_id, person_id, actor_id)


def dissolve_group(store: Store, course_id: int, group_id: int, *, actor_id: int) -> bool:
    """Let a group be no more; what it handed in counts on for those it counted for. False: there is none."""
    with store.write() as connection:
        name = connection.execute(
            delete(LearnerGroupRow)
            .where(LearnerGroupRow.id == group_id, LearnerGroupRow.course_id == course_id)
            .returning(LearnerGroupRow.name)
        ).scalar_one_or_none()
        if name is not None:
            audit(connection, f"course:{course_id}", "group_dissolved", actor_id=actor_id, group=name)
        return name is not None


def put_into_groups(store: Store, course_id: int, wanted: Mapping[str, str], *, actor_id: int) -> int:
    """Put learners into groups by login and the group's name, all of them or none; returns how many groups are new.

    Raises:
        UsageError: some of them do not learn in the course; their logins are told.
    """
    with store.write() as connection:
        # The course is locked: two lists at once make no group twice.
        connection.execute(
            select(CourseRow.id).where(CourseRow.id == course_id).with_for_update(key_share=True)
        )
        rows = connection.execute(
            select(PersonRow.login, PersonRow.id)
            .join(EnrolmentRow, EnrolmentRow.person_id == PersonRow.id)
            .where(EnrolmentRow.course_id == course_id, EnrolmentRow.role == Role.LEARNER)
        )
        learners = {row.login: row.id for row in rows}
        strangers = sorted(set(wanted) - set(learners))
        if strangers:
            raise UsageError(f"do not learn in this course: {', '.join(strangers[:10])}")
        there = connection.execute(
            select(LearnerGroupRow.name, LearnerGroupRow.id).where(LearnerGroupRow.course_id == course_id)
        )
        groups = {row.name: row.id for row in there}
        new = sorted(set(wanted.values()) - set(groups))
        groups |= {name: _make(connection, course_id, name, actor_id) for name in new}
        for login, name in wanted.items():
            _put(connection, course_id, groups[name], learners[login], actor_id)
        return len(new)


def _may_form(connection: Connection, course_id: int, person_id: int) -> int | None:
    """That this learner may found or join a group; returns how many may be in one, None: any number."""
    rules = read_grading_rules(connection, course_id)
    if not rules.forms_groups:
        raise UsageError("the groups of this course are made by its instructors")
    there = connection.execute(
        select(GroupMemberRow.id).where(
            GroupMemberRow.course_id == course_id, GroupMemberRow.person_id == person_id
        )
    ).scalar_one_or_none()
    if there is not None:
        raise UsageError("you are in a group already; leave it first")
    return rules.group_size


def _make(connection: Connection, course_id: int, name: str, actor_id: int) -> int:
    name = name.strip()[:_MOST_NAME]
    if not name:
        raise UsageError("a group needs a name")
    group_id = connection.execute(
        insert(LearnerGroupRow)
        .values(
            course_id=course_id,
            name=name,
            join_code=secrets.token_hex(4).upper(),
            created_at=database_now(),
        )
        .returning(LearnerGroupRow.id)
    ).scalar_one()
    audit(connection, f"course:{course_id}", "group_made", actor_id=actor_id, group=name)
    return group_id


def _put(connection: Connection, course_id: int, group_id: int, person_id: int, actor_id: int) -> None:
    group = connection.execute(
        select(LearnerGroupRow.name).where(
            LearnerGroupRow.id == group_id, LearnerGroupRow.course_id == course_id
        )
    ).scalar_one_or_none()
    # Their enrolment is locked, as handing in locks it: an upload sees the group before or after.
    learns = connection.execute(
        select(EnrolmentRow.id)
        .where(
            EnrolmentRow.course_id == course_id,
            EnrolmentRow.person_id == person_id,
            EnrolmentRow.role == Role.LEARNER,
        )
        .with_for_update()
    ).scalar_one_or_none()
    if group is None or learns is None:
        raise UsageError("there is no such group, or they do not learn in this course")
    _take_out(connection, course_id, person_id, actor_id)
    connection.execute(
        insert(GroupMemberRow).values(group_id=group_id, course_id=course_id, person_id=person_id)
    )
    audit(
        connection,
        f"course:{course_id}",
        "group_joined",
        actor_id=actor_id,
        person_id=person_id,
        group=group,
    )


def _take_out(connection: Connection, course_id: int, person_id: int, actor_id: int) -> None:
    gone = connection.execute(
        delete(GroupMemberRow).where(
            GroupMemberRow.course_id == course_id, GroupMemberRow.person_id == person_id
        )
    ).rowcount
    if gone:
        audit(connection, f"course:{course_id}", "group_left", actor_id=actor_id, person_id=person_id)


def _size(connection: Connection, group_id: int) -> int:
    return connection.execute(
        select(func.count())
        .select_from(GroupMemberRow)
        .join(EnrolmentRow, _LEARNS)
        .where(GroupMemberRow.group_id == group_id)
    ).scalar_one()


# Who left the course, or teaches it by now, is in no group of it until they learn there again.
_LEARNS = and_(
    EnrolmentRow.course_id == GroupMemberRow.course_id,
    EnrolmentRow.person_id == GroupMemberRow.person_id,
    EnrolmentRow.role == Role.LEARNER,
)
