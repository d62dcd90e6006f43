"""Invitations: codes that let people into a course by themselves. Makes no account."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sqlalchemy import false, func, insert, select, update

from grader.store.clock import database_now
from grader.store.courses.enrolment_details import EnrolmentDetails
from grader.store.courses.enrolments import enrol_within
from grader.store.database import Store
from grader.store.events import audit
from grader.store.tables import CourseRow, EnrolmentRow, InvitationRow
from grader.store.tables.person import Role

# Typed by hand from a projector: no letters that look alike. 8 of 31: 39 bits, and guessing is limited by the doors.
_LETTERS = "ABCDEFGHJKMNPQRSTUVWXYZ23456789"


class InvitationResult(StrEnum):
    """What became of an invitation that somebody used."""

    ENTERED = "entered"
    ALREADY_IN = "already_in"
    UNKNOWN = "unknown"
    EXPIRED = "expired"
    USED_UP = "used_up"


@dataclass(frozen=True, slots=True)
class Redemption:
    """What using a code did; `course_id` is None where the code opens nothing."""

    result: InvitationResult
    course_id: int | None = None


@dataclass(frozen=True, slots=True)
class InvitationFacts:
    """A code as instructors see it; `max_uses` None: as often as asked; `expired` by the database's clock."""

    code: str
    course_id: int
    role: Role
    section: str | None
    expires_at: datetime | None
    expired: bool
    max_uses: int | None
    num_uses: int

    @property
    def open(self) -> bool:
        """Whether somebody could still enter with it."""
        return not self.expired and (self.max_uses is None or self.num_uses < self.max_uses)


@dataclass(frozen=True, slots=True)
class InvitationPreview:
    """What a code would do: `entered` and the course that it opens, or why it opens none.

    `login`, `name`, `email`: of the one person whom it is for, "" where it is for many.
    """

    result: InvitationResult
    course_id: int | None = None
    course: str = ""
    role: Role = Role.LEARNER
    login: str = ""
    name: str = ""
    email: str = ""


def invite(
    store: Store,
    course_id: int,
    *,
    role: Role = Role.LEARNER,
    section: str | None = None,
    lifetime_s: float | None = None,
    max_uses: int | None = None,
    actor_id: int | None,
) -> str:
    """A new code for a course; holds until it is revoked, has expired or is used up."""
    code = new_code(8)
    with store.write() as connection:
        connection.execute(
            insert(InvitationRow).values(
                course_id=course_id,
                code=code,
                role=role,
                section=section,
                expires_at=None if lifetime_s is None else database_now(lifetime_s),
                max_uses=max_uses,
            )
        )
        audit(connection, f"course:{course_id}", "invited", actor_id=actor_id, role=role)
    return code


def look_up(store: Store, code: str) -> InvitationPreview:
    """What a code would open, without using it."""
    with store.read() as connection:
        row = connection.execute(
            select(
                CourseRow.id,
                CourseRow.title,
                InvitationRow.role,
                InvitationRow.login,
                InvitationRow.name,
                InvitationRow.email,
                (InvitationRow.expires_at <= database_now()).label("expired"),
                (InvitationRow.num_uses >= InvitationRow.max_uses).label("used_up"),
            )
            .join(CourseRow, CourseRow.id == InvitationRow.course_id)
            .where(InvitationRow.code == _spelt(code), InvitationRow.revoked_at.is_(None))
        ).one_or_none()
    if row is None:
        return InvitationPreview(InvitationResult.UNKNOWN)
    if row.expired or row.used_up:
        return InvitationPreview(InvitationResult.EXPIRED if row.expired else InvitationResult.USED_UP)
    of_one = (row.login or "", row.name or "", row.email or "")
    return InvitationPreview(InvitationResult.ENTERED, row.id, row.title, row.role, *of_one)


def redeem(store: Store, code: str, person_id: int) -> Redemption:
    """Use a code; who is in the course already uses nothing up and keeps their role."""
    with store.write() as connection:
        row = connection.execute(
            select(
                InvitationRow.id,
                InvitationRow.course_id,
                InvitationRow.role,
                InvitationRow.section,
                InvitationRow.external_id,
                InvitationRow.max_uses,
                InvitationRow.num_uses,
                (InvitationRow.expires_at <= database_now()).label("expired"),
            )
            .where(InvitationRow.code == _spelt(code), InvitationRow.revoked_at.is_(None))
            .with_for_update()
        ).one_or_none()
        if row is None:
            return Redemption(InvitationResult.UNKNOWN)
        if row.expired:
            return Redemption(InvitationResult.EXPIRED)
        inside = connection.execute(
            select(EnrolmentRow.id).where(
                EnrolmentRow.course_id == row.course_id, EnrolmentRow.person_id == person_id
            )
        ).scalar_one_or_none()
        if inside is not None:
            return Redemption(InvitationResult.ALREADY_IN, row.course_id)
        if row.max_uses is not None and row.num_uses >= row.max_uses:
            return Redemption(InvitationResult.USED_UP)
        connection.execute(
            update(InvitationRow)
            .where(InvitationRow.id == row.id)
            .values(num_uses=InvitationRow.num_uses + 1)
        )
        enrol_within(
            connection,
            row.course_id,
            person_id,
            row.role,
            details=EnrolmentDetails(row.section, row.external_id),
            actor_id=person_id,
        )
        return Redemption(InvitationResult.ENTERED, row.course_id)


def invitations_of(store: Store, course_id: int) -> tuple[InvitationFacts, ...]:
    """The codes of a course for many that were not revoked, the newest first."""
    with store.read() as connection:
        rows = connection.execute(
            select(
                InvitationRow.code,
                InvitationRow.course_id,
                InvitationRow.role,
                InvitationRow.section,
                InvitationRow.expires_at,
                func.coalesce(InvitationRow.expires_at <= database_now(), false()),
                InvitationRow.max_uses,
                InvitationRow.num_uses,
            )
            .where(
                InvitationRow.course_id == course_id,
                InvitationRow.revoked_at.is_(None),
                InvitationRow.login.is_(None),
            )
            .order_by(InvitationRow.id.desc())
        )
        return tuple(InvitationFacts(*row) for row in rows)


def revoke_invitation(store: Store, code: str, *, actor_id: int | None) -> bool:
    """End a code; False: there is none that still holds."""
    with store.write() as connection:
        course_id = connection.execute(
            update(InvitationRow)
            .where(InvitationRow.code == _spelt(code), InvitationRow.revoked_at.is_(None))
            .values(revoked_at=database_now())
            .returning(InvitationRow.course_id)
        ).scalar_one_or_none()
        if course_id is not None:
            audit(connection, f"course:{course_id}", "invitation_revoked", actor_id=actor_id)
        return course_id is not None


def new_code(length: int) -> str:
    """A code of so many letters, out of reach of any guessing that the doors let through."""
    return "".join(secrets.choice(_LETTERS) for _ in range(length))


def _spelt(code: str) -> str:
    return "".join(letter for letter in code.upper() if letter.isalnum())
