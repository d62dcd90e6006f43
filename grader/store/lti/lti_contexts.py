"""Which course of a platform is which of ours, who is in it there, and which of its links opens which task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, and_, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from grader.errors import UsageError
from grader.store.clock import database_now
from grader.store.courses.enrolments import enrol_within
from grader.store.database import Store
from grader.store.events import audit
from grader.store.lti.lti_scores import note_scores, set_line_item
from grader.store.tables import (
    CourseTaskRow,
    EnrolmentRow,
    LtiContextRow,
    LtiLineItemRow,
    LtiLinkRow,
    LtiMemberRow,
    LtiPlatformRow,
    PersonRow,
)
from grader.store.tables.person import Role
from grader.store.upsert import upsert


@dataclass(frozen=True, slots=True)
class ContextFacts:
    """A platform's course, as a launch from it says; see `grader.store.tables.lti_context`."""

    platform_id: int
    deployment: str
    context: str
    title: str
    members_url: str | None
    line_items_url: str | None
    scopes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PlatformContext:
    """A platform's course that is connected to one of ours."""

    id: int
    course_id: int
    platform: str
    platform_enabled: bool
    created_at: datetime
    roster_at: datetime | None
    roster_problem: str | None
    num_left_out: int
    facts: ContextFacts


@dataclass(frozen=True, slots=True)
class FormerMember:
    """Somebody of a course of ours whom the platform's list has no more."""

    person_id: int
    name: str
    login: str
    left_at: datetime


def connect(store: Store, facts: ContextFacts, course_id: int, *, actor_id: int) -> int:
    """Connect a platform's course to one of ours, and return the connection's id.

    Raises:
        UsageError: it is connected already.
    """
    try:
        with store.write() as connection:
            context_id = connection.execute(
                insert(LtiContextRow)
                .values(course_id=course_id, created_at=database_now(), **_values(facts))
                .returning(LtiContextRow.id)
            ).scalar_one()
            subject = f"course:{course_id}"
            audit(connection, subject, "platform_connected", actor_id=actor_id, context=facts.title)
            return context_id
    except IntegrityError:
        raise UsageError("that course of the platform is connected already") from None


def disconnect(store: Store, context_id: int, *, actor_id: int) -> None:
    """End a connection: nobody comes in by it and no grade goes out; people and grades here stay."""
    with store.write() as connection:
        row = connection.execute(
            delete(LtiContextRow)
            .where(LtiContextRow.id == context_id)
            .returning(LtiContextRow.course_id, LtiContextRow.title)
        ).one_or_none()
        if row is not None:
            subject = f"course:{row.course_id}"
            audit(connection, subject, "platform_disconnected", actor_id=actor_id, context=row.title)


def connected(store: Store, facts: ContextFacts) -> PlatformContext | None:
    """The connection of a platform's course, with its addresses as it says them now; None: there is none."""
    found = _one(
        store,
        LtiContextRow.platform_id == facts.platform_id,
        LtiContextRow.deployment == facts.deployment,
        LtiContextRow.context == facts.context,
    )
    if found is None:
        return None
    # Not every launch says all; what it leaves out is as it was.
    facts = replace(
        facts,
        members_url=facts.members_url or found.facts.members_url,
        line_items_url=facts.line_items_url or found.facts.line_items_url,
        scopes=facts.scopes or found.facts.scopes,
    )
    if found.facts == facts:
        return found
    with store.write() as connection:
        connection.execute(update(LtiContextRow).where(LtiContextRow.id == found.id).values(**_values(facts)))
    return _one(store, LtiContextRow.id == found.id)


def context(store: Store, context_id: int) -> PlatformContext | None:
    """The connection of that id, or None."""
    return _one(store, LtiContextRow.id == context_id)


def contexts_of(store: Store, course_id: int) -> tuple[PlatformContext, ...]:
    """All connections of a course, by platform and title."""
    with store.read() as connection:
        rows = connection.execute(
            _CONTEXT.where(LtiContextRow.course_id == course_id).order_by(
                LtiPlatformRow.name, LtiContextRow.title, LtiContextRow.id
            )
        ).all()
    return tuple(_context(row) for row in rows)


def enter(
    store: Store, found: PlatformContext, person_id: int, subject: str, role: Role | None
) -> Role | None:
    """Let somebody whom the platform sends into the course, and return their role there.

    Who takes part already keeps the role that the course's staff gave them. None: they take no part, and the platform
    gives them none (`role` None).
    """
    with store.write() as connection:
        present = enrolled_role(connection, found.course_id, person_id)
        if present is None and role is not None:
            enrol_within(connection, found.course_id, person_id, role, actor_id=person_id)
            present = role
        if present is not None:
            note_member(connection, found, person_id, subject)
        return present


def note_member(connection: Connection, found: PlatformContext, person_id: int, subject: str) -> None:
    """Remember what the platform calls somebody of the course, and tell it how they stand."""
    key = {"context_id": found.id, "person_id": person_id}
    values = {**key, "subject": subject, "left_at": None}
    connection.execute(upsert(connection, LtiMemberRow, list(key), values, update=["subject", "left_at"]))
    for task in connection.execute(
        select(CourseTaskRow.id).where(CourseTaskRow.course_id == found.course_id)
    ).scalars():
        note_scores(connection, task, [person_id])


def enrolled_role(connection: Connection, course_id: int, person_id: int) -> Role | None:
    """What somebody is in a course; None: they take no part."""
    return connection.execute(
        select(EnrolmentRow.role).where(
            EnrolmentRow.course_id == course_id, EnrolmentRow.person_id == person_id
        )
    ).scalar_one_or_none()


def link_task(
    store: Store, found: PlatformContext, resource_link: str, course_task_id: int, line_item_url: str | None
) -> None:
    """Let a link of the platform open a task; its column there holds the task's grades, unless another one does."""
    with store.write() as connection:
        key = {"context_id": found.id, "resource_link": resource_link}
        values = {**key, "course_task_id": course_task_id}
        connection.execute(upsert(connection, LtiLinkRow, list(key), values, update=["course_task_id"]))
        there = select(LtiLineItemRow.url).where(
            LtiLineItemRow.context_id == found.id, LtiLineItemRow.course_task_id == course_task_id
        )
        if line_item_url and connection.execute(there).first() is None:
            set_line_item(connection, found.id, course_task_id, line_item_url)


def linked_task(store: Store, context_id: int, resource_link: str) -> int | None:
    """The task that a link opens, or None: it was told no task yet."""
    with store.read() as connection:
        return connection.execute(
            select(LtiLinkRow.course_task_id).where(
                LtiLinkRow.context_id == context_id, LtiLinkRow.resource_link == resource_link
            )
        ).scalar_one_or_none()


def former_members(store: Store, course_id: int) -> tuple[FormerMember, ...]:
    """Who takes part in a course as a learner though the platform they came from lists them no more, by name.

    Whom another connection of the course still lists is not among them.
    """
    still = (
        select(LtiMemberRow.person_id)
        .join(LtiContextRow, LtiContextRow.id == LtiMemberRow.context_id)
        .where(LtiContextRow.course_id == course_id, LtiMemberRow.left_at.is_(None))
    )
    with store.read() as connection:
        rows = connection.execute(
            select(PersonRow.id, PersonRow.name, PersonRow.login, LtiMemberRow.left_at)
            .join(LtiMemberRow, LtiMemberRow.person_id == PersonRow.id)
            .join(LtiContextRow, LtiContextRow.id == LtiMemberRow.context_id)
            .join(
                EnrolmentRow,
                and_(
                    EnrolmentRow.person_id == PersonRow.id,
                    EnrolmentRow.course_id == LtiContextRow.course_id,
                    EnrolmentRow.role == Role.LEARNER,
                ),
            )
            .where(
                LtiContextRow.course_id == course_id,
                LtiMemberRow.left_at.is_not(None),
                PersonRow.id.not_in(still),
            )
            .order_by(PersonRow.name, PersonRow.id)
        ).all()
    found = {row.id: FormerMember(row.id, row.name, row.login, row.left_at) for row in rows}
    return tuple(found.values())


def num_members(store: Store, context_ids: Sequence[int]) -> dict[int, int]:
    """How many people of each connection are known by what the platform calls them."""
    with store.read() as connection:
        ids = connection.execute(
            select(LtiMemberRow.context_id).where(
                LtiMemberRow.context_id.in_(context_ids), LtiMemberRow.left_at.is_(None)
            )
        ).scalars()
        found = list(ids)
    return {one: found.count(one) for one in context_ids}


def _one(store: Store, *conditions: Any) -> PlatformContext | None:
    with store.read() as connection:
        row = connection.execute(_CONTEXT.where(*conditions)).one_or_none()
    return None if row is None else _context(row)


def _values(facts: ContextFacts) -> dict[str, Any]:
    return {one.name: getattr(facts, one.name) for one in fields(facts)} | {"scopes": list(facts.scopes)}


def _context(row: Any) -> PlatformContext:
    said = {one.name: getattr(row, one.name) for one in fields(ContextFacts)}
    known = {one.name: getattr(row, one.name) for one in fields(PlatformContext) if one.name != "facts"}
    return PlatformContext(**known, facts=ContextFacts(**{**said, "scopes": tuple(row.scopes)}))


_CONTEXT = select(
    LtiContextRow.id,
    LtiContextRow.course_id,
    LtiPlatformRow.name.label("platform"),
    LtiPlatformRow.disabled_at.is_(None).label("platform_enabled"),
    LtiContextRow.created_at,
    LtiContextRow.roster_at,
    LtiContextRow.roster_problem,
    LtiContextRow.num_left_out,
    *(getattr(LtiContextRow, one.name) for one in fields(ContextFacts)),
).join(LtiPlatformRow, LtiPlatformRow.id == LtiContextRow.platform_id)
