"""Signing on with an identity that an issuer vouches for: whose account it opens, or which one is made for it.

An account that an address opens is a learner's, and nobody's who teaches: those link their identity signed in. Whoever
was erased starts anew; a closed account stays closed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sqlalchemy import Connection, Row, exists, func, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from grader.store.clock import database_now
from grader.store.database import Store
from grader.store.events import audit
from grader.store.people import credentials, one_time_passwords
from grader.store.people.group_roles import GroupRoles, apply_group_roles
from grader.store.people.identities import VouchedIdentity, add_identity, owner_of
from grader.store.tables import EnrolmentRow, IdentityRow, MembershipRow, PersonRow
from grader.store.tables.person import Role

_TRIES = 5
_MOST_LOGIN = 60


@dataclass(frozen=True, slots=True)
class SignOnTerms:
    """What an issuer may open: the account that has a verified address, and a new account for whoever has none."""

    link_by_address: bool = False
    open_accounts: bool = False


class SignOnRefusal(StrEnum):
    """Why an identity opens no account."""

    CLOSED = "closed"
    """The account is closed."""
    ADDRESS_IN_USE = "address_in_use"
    """An account has this address that no address opens: its owner links it, signed in."""
    NO_ACCOUNT = "no_account"
    """There is none, and none is made."""


@dataclass(frozen=True, slots=True)
class SignedOn:
    """Whom an identity is; `made`: the account is new; `linked`: it was there, and is theirs from now on."""

    person_id: int
    made: bool = False
    linked: bool = False


def sign_on(
    store: Store, identity: VouchedIdentity, terms: SignOnTerms, roles: GroupRoles | None = None
) -> SignedOn | SignOnRefusal:
    """The account of an identity, found, linked or made; `roles` None: groups say nothing, and change nothing."""
    for _ in range(_TRIES - 1):
        try:
            return _sign_on(store, identity, terms, roles)
        except IntegrityError:
            # Two came at once: with this identity, or with this login for a new account.
            continue
    return _sign_on(store, identity, terms, roles)


def _sign_on(
    store: Store, identity: VouchedIdentity, terms: SignOnTerms, roles: GroupRoles | None
) -> SignedOn | SignOnRefusal:
    with store.write() as connection:
        found = account_of(connection, identity, terms)
        if isinstance(found, SignOnRefusal):
            return found
        _used(connection, found.person_id, identity)
        if roles is not None:
            apply_group_roles(connection, found.person_id, identity.issuer, roles)
        return found


def account_of(
    connection: Connection, identity: VouchedIdentity, terms: SignOnTerms
) -> SignedOn | SignOnRefusal:
    """As `sign_on`, within a transaction of the caller's, of somebody who stands on a list and signs in to nothing."""
    known = owner_of(connection, identity)
    if known is not None:
        return _opened(known)
    found = _by_address(connection, identity) if terms.link_by_address else SignOnRefusal.NO_ACCOUNT
    if found is SignOnRefusal.NO_ACCOUNT and terms.open_accounts:
        return _make(connection, identity)
    return found


def _opened(person: Row[int, datetime | None]) -> SignedOn | SignOnRefusal:
    return SignOnRefusal.CLOSED if person.disabled_at is not None else SignedOn(person.id)


def _by_address(connection: Connection, identity: VouchedIdentity) -> SignedOn | SignOnRefusal:
    """The one account that has this address, if an address may open it."""
    if identity.address is None:
        return SignOnRefusal.NO_ACCOUNT
    there = connection.execute(
        select(PersonRow.id, PersonRow.disabled_at, _OPEN_TO_ADDRESS.label("open"))
        .where(
            PersonRow.email == identity.address,
            # Whom this issuer calls otherwise is somebody else: it has given the address to another person since.
            ~exists().where(IdentityRow.person_id == PersonRow.id, IdentityRow.issuer == identity.issuer),
        )
        .order_by(PersonRow.id)
        .with_for_update()
    ).all()
    if not there:
        return SignOnRefusal.NO_ACCOUNT
    if len(there) > 1 or not there[0].open:
        return SignOnRefusal.ADDRESS_IN_USE
    if there[0].disabled_at is not None:
        return SignOnRefusal.CLOSED
    person_id = int(there[0].id)
    # Whoever made the account may have written somebody else's address in it, and waited for them to come.
    connection.execute(
        update(PersonRow).where(PersonRow.id == person_id).values(password_hash=None, must_change=False)
    )
    one_time_passwords.forget(connection, [person_id])
    credentials.end_all(connection, [person_id])
    add_identity(connection, person_id, identity, actor_id=None)
    return SignedOn(person_id, linked=True)


def _make(connection: Connection, identity: VouchedIdentity) -> SignedOn:
    name = identity.name.strip()[:200] or identity.login
    login = _free_login(connection, identity.login)
    person_id = connection.execute(
        insert(PersonRow)
        .values(
            login=login,
            name=name or login,
            role=Role.LEARNER,
            password_hash=None,
            email=identity.address,
            created_at=database_now(),
        )
        .returning(PersonRow.id)
    ).scalar_one()
    audit(
        connection,
        f"person:{person_id}",
        "person_added",
        actor_id=None,
        role=Role.LEARNER,
        issuer=identity.issuer,
    )
    add_identity(connection, person_id, identity, actor_id=None)
    return SignedOn(person_id, made=True)


def _used(connection: Connection, person_id: int, identity: VouchedIdentity) -> None:
    connection.execute(
        update(IdentityRow)
        .where(IdentityRow.issuer == identity.issuer, IdentityRow.subject == identity.subject)
        .values(used_at=database_now())
    )
    connection.execute(
        update(PersonRow)
        .where(PersonRow.id == person_id)
        .values(signed_in_at=database_now(), email=func.coalesce(PersonRow.email, identity.address))
    )
    # A one-time password that still waits has become needless.
    connection.execute(
        update(PersonRow)
        .where(PersonRow.id == person_id, PersonRow.must_change)
        .values(password_hash=None, must_change=False)
    )
    one_time_passwords.forget(connection, [person_id])


def _free_login(connection: Connection, wanted: str) -> str:
    """The login that is wanted, spelt as ours are, with a number behind it where it is taken."""
    spelt = re.sub(r"[^a-z0-9._+-]+", "-", wanted.casefold().partition("@")[0]).strip("-.")[:_MOST_LOGIN]
    spelt = spelt if len(spelt) >= 2 else "learner"
    taken = set(
        connection.execute(
            select(PersonRow.login).where(PersonRow.login.startswith(spelt, autoescape=True))
        ).scalars()
    )
    return next(
        login
        for number in range(1, len(taken) + 3)
        if (login := f"{spelt}{number if number > 1 else ''}") not in taken
    )


_MORE_THAN_LEARNER = or_(
    exists().where(EnrolmentRow.person_id == PersonRow.id, EnrolmentRow.role != Role.LEARNER),
    exists().where(MembershipRow.person_id == PersonRow.id, MembershipRow.taught),
)
_NEVER_OPENED = (
    PersonRow.password_hash.is_(None)
    & PersonRow.signed_in_at.is_(None)
    & ~exists().where(IdentityRow.person_id == PersonRow.id)
    & PersonRow.role.in_([Role.LEARNER, Role.INSTRUCTOR])
)
_OPEN_TO_ADDRESS = ((PersonRow.role == Role.LEARNER) & ~_MORE_THAN_LEARNER) | _NEVER_OPENED
"""A learner's account, or one that nobody could ever sign in to: whoever made it meant the owner of its address."""
