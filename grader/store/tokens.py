"""Tokens for programs: issued once, checked by their hash, revoked. Knows nothing of HTTP."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import insert, or_, select, update

from grader.store.clock import database_now
from grader.store.database import Store
from grader.store.events import audit
from grader.store.people import Account
from grader.store.tables import ApiToken, Person
from grader.store.tables.api_token import Scope

_PREFIX = "grd_"
_USE_S = 60.0


@dataclass(frozen=True, slots=True)
class TokenUse:
    """What a token opens: whose it is, and how far it goes."""

    token_id: int
    account: Account
    scope: Scope

    def allows(self, wanted: Scope) -> bool:
        """Whether the token's scope reaches that far."""
        order = list(Scope)
        return order.index(self.scope) >= order.index(wanted)


@dataclass(frozen=True, slots=True)
class TokenFacts:
    """A token without its secret."""

    id: int
    name: str
    prefix: str
    scope: Scope
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    used_at: datetime | None


def issue_token(
    store: Store,
    person_id: int,
    name: str,
    scope: Scope,
    *,
    lifetime_s: float | None,
    actor_id: int | None,
) -> str:
    """A new token, to be shown once: only its hash is kept. `lifetime_s` None: it holds until revoked."""
    token = _PREFIX + secrets.token_urlsafe(32)
    with store.write() as connection:
        token_id = connection.execute(
            insert(ApiToken)
            .values(
                person_id=person_id,
                name=name,
                token_hash=_hash(token),
                prefix=token[: len(_PREFIX) + 4],
                scope=scope,
                created_at=database_now(),
                expires_at=None if lifetime_s is None else database_now(lifetime_s),
            )
            .returning(ApiToken.id)
        ).scalar_one()
        audit(
            connection,
            f"person:{person_id}",
            "token_issued",
            actor_id=actor_id,
            token_id=token_id,
            scope=scope,
        )
    return token


def check_token(store: Store, token: str) -> TokenUse | None:
    """What a token opens, or None: unknown, expired, revoked, or its owner's account is closed."""
    with store.read() as connection:
        row = connection.execute(
            select(
                ApiToken.id,
                ApiToken.scope,
                or_(ApiToken.used_at.is_(None), ApiToken.used_at < database_now(-_USE_S)).label("unused"),
                Person.id.label("person_id"),
                Person.login,
                Person.name,
                Person.role,
                Person.must_change,
                Person.session_epoch,
            )
            .join(Person, Person.id == ApiToken.person_id)
            .where(
                ApiToken.token_hash == _hash(token),
                ApiToken.revoked_at.is_(None),
                or_(ApiToken.expires_at.is_(None), ApiToken.expires_at > database_now()),
                Person.disabled_at.is_(None),
            )
        ).one_or_none()
    if row is None:
        return None
    if row.unused:
        with store.write() as connection:
            connection.execute(update(ApiToken).where(ApiToken.id == row.id).values(used_at=database_now()))
    owner = Account(row.person_id, row.login, row.name, row.role, row.must_change, row.session_epoch, True)
    return TokenUse(row.id, owner, row.scope)


def revoke_token(store: Store, person_id: int, token_id: int, *, actor_id: int | None) -> bool:
    """End a token of that person; False: they have no such token that still holds."""
    with store.write() as connection:
        done = connection.execute(
            update(ApiToken)
            .where(ApiToken.id == token_id, ApiToken.person_id == person_id, ApiToken.revoked_at.is_(None))
            .values(revoked_at=database_now())
        ).rowcount
        if done:
            audit(connection, f"person:{person_id}", "token_revoked", actor_id=actor_id, token_id=token_id)
        return bool(done)


def tokens_of(store: Store, person_id: int) -> tuple[TokenFacts, ...]:
    """All tokens of a person, newest first."""
    with store.read() as connection:
        rows = connection.execute(
            select(
                ApiToken.id,
                ApiToken.name,
                ApiToken.prefix,
                ApiToken.scope,
                ApiToken.created_at,
                ApiToken.expires_at,
                ApiToken.revoked_at,
                ApiToken.used_at,
            )
            .where(ApiToken.person_id == person_id)
            .order_by(ApiToken.id.desc())
        )
        return tuple(TokenFacts(*row) for row in rows)


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
