"""Invitations: codes that let people into a course by themselves. Makes no account."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sqlalchemy import false, func, insert, select, update

from grader.store.clock import database_now
from grader.store.database import Store
from grader.store.enrolments import enrol_within
from grader.store.events import audit
from grader.store.tables import Course, Enrolment, Invitation
from grader.store.tables.person import Role

# Typed by hand from a projector: no letters that look alike. 8 of 31: 39 bits, and guessing is limited by the doors.
_LETTERS = "ABCDEFGHJKMNPQRSTUVWXYZ23456789"


class Entry(StrEnum):
    """What became of an invitation that somebody used."""

    ENTERED = "entered"
    ALREADY_IN = "already_in"
    UNKNOWN = "unknown"
    EXPIRED = "expired"
    USED_UP = "used_up"


@dataclass(frozen=True, slots=True)
class Redeemed:
    """What using a code did; `course_id` is None where the code opens nothing."""

    entry: Entry
    course_id: int | None = None


@dataclass(frozen=True, slots=True)
class Invited:
    """A code as instructors see it; `max_uses` None: as often as asked; `expired` by the database's clock."""

    code: str
    course_id: int
    role: Role
    expires_at: datetime | None
    expired: bool
    max_uses: int | None
    num_uses: int

    @property
    def open(self) -> bool:
        """Whether somebody could still enter with it."""
        return not self.expired and (self.max_uses is None or self.num_uses < self.max_uses)


@dataclass(frozen=True, slots=True)
class Opens:
    """What a code would do: `entered` and the course that it opens, or why it opens none."""

    entry: Entry
    course_id: int | None = None
    course: str = ""
    role: Role = Role.LEARNER


def invite(
    store: Store,
    course_id: int,
    *,
    role: Role = Role.LEARNER,
    lifetime_s: float | None = None,
    max_uses: int | None = None,
    actor_id: int | None,
) -> str:
    """A new code for a course; holds until it is revoked, has expired or is used up."""
    code = "".join(secrets.choice(_LETTERS) for _ in range(8))
    with store.write() as connection:
        connection.execute(
            insert(Invitation).values(
                course_id=course_id,
                code=code,
                role=role,
                expires_at=None if lifetime_s is None else database_now(lifetime_s),
                max_uses=max_uses,
            )
        )
        audit(connection, f"course:{course_id}", "invited", actor_id=actor_id, role=role)
    return code


def look_up(store: Store, code: str) -> Opens:
    """What a code would open, without using it."""
    with store.read() as connection:
        row = connection.execute(
            select(
                Course.id,
                Course.title,
                Invitation.role,
                (Invitation.expires_at <= database_now()).label("expired"),
                (Invitation.num_uses >= Invitation.max_uses).label("used_up"),
            )
            .join(Course, Course.id == Invitation.course_id)
            .where(Invitation.code == _spelt(code), Invitation.revoked_at.is_(None))
        ).one_or_none()
    if row is None:
        return Opens(Entry.UNKNOWN)
    if row.expired or row.used_up:
        return Opens(Entry.EXPIRED if row.expired else Entry.USED_UP)
    return Opens(Entry.ENTERED, row.id, row.title, row.role)


def redeem(store: Store, code: str, person_id: int) -> Redeemed:
    """Use a code; who is in the course already uses nothing up and keeps their role."""
    with store.write() as connection:
        row = connection.execute(
            select(
                Invitation.id,
                Invitation.course_id,
                Invitation.role,
                Invitation.max_uses,
                Invitation.num_uses,
                (Invitation.expires_at <= database_now()).label("expired"),
            )
            .where(Invitation.code == _spelt(code), Invitation.revoked_at.is_(None))
            .with_for_update()
        ).one_or_none()
        if row is None:
            return Redeemed(Entry.UNKNOWN)
        if row.expired:
            return Redeemed(Entry.EXPIRED)
        inside = connection.execute(
            select(Enrolment.id).where(Enrolment.course_id == row.course_id, Enrolment.person_id == person_id)
        ).scalar_one_or_none()
        if inside is not None:
            return Redeemed(Entry.ALREADY_IN, row.course_id)
        if row.max_uses is not None and row.num_uses >= row.max_uses:
            return Redeemed(Entry.USED_UP)
        connection.execute(
            update(Invitation).where(Invitation.id == row.id).values(num_uses=Invitation.num_uses + 1)
        )
        enrol_within(connection, row.course_id, person_id, row.role, actor_id=person_id)
        return Redeemed(Entry.ENTERED, row.course_id)


def invitations_of(store: Store, course_id: int) -> tuple[Invited, ...]:
    """The codes of a course that were not revoked, the newest first."""
    with store.read() as connection:
        rows = connection.execute(
            select(
                Invitation.code,
                Invitation.course_id,
                Invitation.role,
                Invitation.expires_at,
                func.coalesce(Invitation.expires_at <= database_now(), false()),
                Invitation.max_uses,
                Invitation.num_uses,
            )
            .where(Invitation.course_id == course_id, Invitation.revoked_at.is_(None))
            .order_by(Invitation.id.desc())
        )
        return tuple(Invited(*row) for row in rows)


def revoke_invitation(store: Store, code: str, *, actor_id: int | None) -> bool:
    """End a code; False: there is none that still holds."""
    with store.write() as connection:
        course_id = connection.execute(
            update(Invitation)
            .where(Invitation.code == _spelt(code), Invitation.revoked_at.is_(None))
            .values(revoked_at=database_now())
            .returning(Invitation.course_id)
        ).scalar_one_or_none()
        if course_id is not None:
            audit(connection, f"course:{course_id}", "invitation_revoked", actor_id=actor_id)
        return course_id is not None


def _spelt(code: str) -> str:
    return "".join(letter for letter in code.upper() if letter.isalnum())
