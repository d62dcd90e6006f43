"""What others call the owners of our accounts: adding such an identity to an account, and taking it away.

An identity is an issuer's `sub`, and nothing else: an address or a name that changes there moves nobody here, and no
name that somebody chose there opens an account of ours. Reads no token; whoever calls has made sure of the identity.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sqlalchemy import Connection, Row, delete, insert, select
from sqlalchemy.exc import IntegrityError

from grader.store.clock import database_now
from grader.store.database import Store
from grader.store.events import audit
from grader.store.people.group_roles import GroupRoles, apply_group_roles
from grader.store.tables import IdentityRow, PersonRow


@dataclass(frozen=True, slots=True)
class VouchedIdentity:
    """What an issuer says of somebody.

    Attributes:
        issuer, subject: the identity, at most 255 characters each.
        name: to be shown; login: what an account of theirs may be called.
        address: their mail address in lower case, only where the issuer has verified it; None: not told, or not sure.
    """

    issuer: str
    subject: str
    name: str
    login: str
    address: str | None = None


class LinkResult(StrEnum):
    """What became of adding an identity to an account."""

    LINKED = "linked"
    ALREADY = "already"
    ANOTHERS = "anothers"
    """Another account has it."""


@dataclass(frozen=True, slots=True)
class WaysIn:
    """What lets anybody in at all: identities of these issuers, and (or not) passwords of ours."""

    issuers: frozenset[str]
    password: bool


class UnlinkResult(StrEnum):
    """What became of taking an identity away."""

    REMOVED = "removed"
    LAST = "last"
    """It is the only way in."""
    NONE = "none"
    """It is none of this account's."""


@dataclass(frozen=True, slots=True)
class StoredIdentity:
    """An identity of an account; used_at None: never yet."""

    id: int
    issuer: str
    created_at: datetime
    used_at: datetime | None


@dataclass(frozen=True, slots=True)
class AccountSignOn:
    """What opens an account: whether it has a password of ours, and its identities, oldest first."""

    has_password: bool
    identities: tuple[StoredIdentity, ...]


def link(store: Store, person_id: int, identity: VouchedIdentity) -> LinkResult:
    """Add an identity to an account, whose owner has asked for it."""
    try:
        with store.write() as connection:
            theirs = owner_of(connection, identity)
            if theirs is not None:
                return LinkResult.ALREADY if theirs.id == person_id else LinkResult.ANOTHERS
            add_identity(connection, person_id, identity, actor_id=person_id)
            return LinkResult.LINKED
    except IntegrityError:
        return LinkResult.ANOTHERS


def unlink(store: Store, person_id: int, identity_id: int, ways: WaysIn) -> UnlinkResult:
    """Take an identity from its account, with the roles that its groups gave, if another way in is left."""
    with store.write() as connection:
        # Of two that are taken away at once, one is the last.
        password = connection.execute(
            select(PersonRow.password_hash).where(PersonRow.id == person_id).with_for_update()
        ).scalar_one_or_none()
        issuers = {
            row.id: row.issuer
            for row in connection.execute(
                select(IdentityRow.id, IdentityRow.issuer).where(IdentityRow.person_id == person_id)
            )
        }
        if identity_id not in issuers:
            return UnlinkResult.NONE
        issuer = issuers.pop(identity_id)
        if not (ways.password and password is not None) and not ways.issuers & set(issuers.values()):
            return UnlinkResult.LAST
        connection.execute(delete(IdentityRow).where(IdentityRow.id == identity_id))
        apply_group_roles(connection, person_id, issuer, GroupRoles())
        audit(connection, f"person:{person_id}", "sign_on_removed", actor_id=person_id, issuer=issuer)
        return UnlinkResult.REMOVED


def sign_on_of(store: Store, person_id: int) -> AccountSignOn:
    """How the owner of an account comes in."""
    with store.read() as connection:
        password = connection.execute(
            select(PersonRow.password_hash).where(PersonRow.id == person_id)
        ).scalar_one_or_none()
        rows = connection.execute(
            select(IdentityRow.id, IdentityRow.issuer, IdentityRow.created_at, IdentityRow.used_at)
            .where(IdentityRow.person_id == person_id)
            .order_by(IdentityRow.id)
        )
        return AccountSignOn(password is not None, tuple(StoredIdentity(*row) for row in rows))


def owner_of(connection: Connection, identity: VouchedIdentity) -> Row[int, datetime | None] | None:
    """The account that has an identity, `id` and `disabled_at`, or None."""
    return connection.execute(
        select(PersonRow.id, PersonRow.disabled_at)
        .join(IdentityRow, IdentityRow.person_id == PersonRow.id)
        .where(IdentityRow.issuer == identity.issuer, IdentityRow.subject == identity.subject)
    ).one_or_none()


def add_identity(
    connection: Connection, person_id: int, identity: VouchedIdentity, *, actor_id: int | None
) -> None:
    """Add an identity to an account, within a transaction of the caller's.

    Raises:
        sqlalchemy.exc.IntegrityError: an account has it already.
    """
    connection.execute(
        insert(IdentityRow).values(
            person_id=person_id,
            issuer=identity.issuer,
            subject=identity.subject,
            created_at=database_now(),
        )
    )
    audit(
        connection,
        f"person:{person_id}",
        "sign_on_linked",
        actor_id=actor_id,
        issuer=identity.issuer,
        address=identity.address,
    )
