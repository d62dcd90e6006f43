"""Invitations of one person each, as a list of people names them. What a code does once it is there: `invitations`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, func, insert, select, update

from grader.store.clock import database_now
from grader.store.database import Store
from grader.store.events import audit
from grader.store.people.invitations import new_code
from grader.store.tables import InvitationRow
from grader.store.tables.person import Role

_HOLDS_S = 60 * 86400.0


@dataclass(frozen=True, slots=True)
class PersonalInvitation:
    """Whom an invitation of one person is for, and what they become; `code`: "" until it is made."""

    login: str
    name: str
    role: Role
    email: str | None
    section: str | None
    external_id: str | None
    code: str = ""


def invite_each(
    connection: Connection, course_id: int, invited: Sequence[PersonalInvitation], *, actor_id: int | None
) -> int:
    """A link for each of these people, within a transaction of the caller's; returns how many have none yet.

    Who has one keeps it: of role, section and id the new ones hold.
    """
    if not invited:
        return 0
    there = {
        one.login: one.id
        for one in connection.execute(
            select(InvitationRow.id, InvitationRow.login).where(
                *_open_of_one(course_id), InvitationRow.login.in_([one.login for one in invited])
            )
        )
    }
    for one in invited:
        if one.login in there:
            connection.execute(
                update(InvitationRow)
                .where(InvitationRow.id == there[one.login])
                .values(role=one.role, section=one.section, external_id=one.external_id, email=one.email)
            )
    new = [one for one in invited if one.login not in there]
    if new:
        connection.execute(
            insert(InvitationRow).values(course_id=course_id, expires_at=database_now(_HOLDS_S), max_uses=1),
            [
                {
                    "code": new_code(16),
                    "role": one.role,
                    "section": one.section,
                    "external_id": one.external_id,
                    "login": one.login,
                    "name": one.name,
                    "email": one.email,
                }
                for one in new
            ],
        )
        audit(connection, f"course:{course_id}", "invited_each", actor_id=actor_id, number=len(new))
    return len(new)


def personal_invitations(store: Store, course_id: int) -> tuple[PersonalInvitation, ...]:
    """Those of one person each that nobody has used yet, by section and name."""
    with store.read() as connection:
        rows = connection.execute(
            select(
                InvitationRow.login,
                InvitationRow.name,
                InvitationRow.role,
                InvitationRow.email,
                InvitationRow.section,
                InvitationRow.external_id,
                InvitationRow.code,
            )
            .where(*_open_of_one(course_id))
            .order_by(func.coalesce(InvitationRow.section, ""), InvitationRow.name, InvitationRow.id)
        )
        return tuple(PersonalInvitation(row[0] or "", row[1] or "", *row[2:]) for row in rows)


def revoke_personal(store: Store, course_id: int, *, actor_id: int | None) -> int:
    """End all of them; returns how many."""
    with store.write() as connection:
        gone = connection.execute(
            update(InvitationRow).where(*_open_of_one(course_id)).values(revoked_at=database_now())
        ).rowcount
        if gone:
            audit(connection, f"course:{course_id}", "invitation_revoked", actor_id=actor_id, number=gone)
        return gone


def _open_of_one(course_id: int) -> tuple[ColumnElement[bool], ...]:
    return (
        InvitationRow.course_id == course_id,
        InvitationRow.login.is_not(None),
        InvitationRow.revoked_at.is_(None),
        InvitationRow.num_uses == 0,
        InvitationRow.expires_at > database_now(),
    )
