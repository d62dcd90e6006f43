"""Tokens for programs: issued once, checked by their hash, revoked. Knows nothing of HTTP."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import bindparam, insert, or_, select, update

from grader.store.clock import database_now
from grader.store.database import Store
from grader.store.enrolments import OwnCourse, courses_of_each
from grader.store.events import audit
from grader.store.people import Account
from grader.store.tables import ApiToken, Person
from grader.store.tables.api_token import Scope

_PREFIX = "grd_"
_USE_S = 60.0


@dataclass(frozen=True, slots=True)
class TokenUse:
    """What a token opens: whose it is, how far it goes, and the courses that its owner takes part in."""

    token_id: int
    account: Account
    scope: Scope
    courses: tuple[OwnCourse, ...]

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
    return check_tokens(store, [token])[0]


def check_tokens(store: Store, tokens: Sequence[str]) -> list[TokenUse | None]:
    """What each of several tokens opens, in their order: those of programs that come at the same moment."""
    hashes = [_hash(token) for token in tokens]
    with store.read() as connection:
        rows = {row.token_hash: row for row in connection.execute(_USE, {"shown": sorted(set(hashes))})}
        courses = courses_of_each(connection, [row.person_id for row in rows.values()]) if rows else {}
    unused = [row.id for row in rows.values() if row.unused]
    if unused:
        with store.write() as connection:
            connection.execute(_MARK, {"unused": unused})
    uses = {
        shown: TokenUse(
            row.id,
            Account(row.person_id, row.login, row.name, row.role, row.must_change, row.session_epoch, True),
            row.scope,
            courses[row.person_id],
        )
        for shown, row in rows.items()
    }
    return [uses.get(shown) for shown in hashes]


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


# Made once: it is asked for with every request of a program, and making it takes longer than running it.
_USE = (
    select(
        ApiToken.id,
        ApiToken.token_hash,
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
        ApiToken.token_hash.in_(bindparam("shown", expanding=True)),
        ApiToken.revoked_at.is_(None),
        or_(ApiToken.expires_at.is_(None), ApiToken.expires_at > database_now()),
        Person.disabled_at.is_(None),
    )
)
_MARK = (
    update(ApiToken)
    .where(
        ApiToken.id.in_(
            select(ApiToken.id)
            .where(ApiToken.id.in_(bindparam("unused", expanding=True)))
            .order_by(ApiToken.id)
            # Another process that holds one of them is just marking it.
            .with_for_update(skip_locked=True)
        )
    )
    .values(used_at=database_now())
)
