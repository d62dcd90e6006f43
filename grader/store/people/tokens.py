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
from grader.store.events import audit
from grader.store.people.own_courses import OwnCourse, courses_of_each
from grader.store.people.people import Account
from grader.store.tables import ApiTokenRow, PersonRow
from grader.store.tables.api_token import Scope

_PREFIX = "grd_"
_USE_S = 60.0


@dataclass(frozen=True, slots=True)
class TokenUse:
    """What a token opens: whose it is, how far it goes, the courses that its owner takes part in, its own name."""

    account: Account
    scope: Scope
    courses: tuple[OwnCourse, ...]
    name: str


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
            insert(ApiTokenRow)
            .values(
                person_id=person_id,
                name=name,
                token_hash=_hash(token),
                prefix=token[: len(_PREFIX) + 4],
                scope=scope,
                created_at=database_now(),
                expires_at=None if lifetime_s is None else database_now(lifetime_s),
            )
            .returning(ApiTokenRow.id)
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


def check_tokens(store: Store, tokens: Sequence[str]) -> list[TokenUse | None]:
    """What each of several tokens opens, in their order: those of programs that come at the same moment.

    None: unknown, expired, revoked, or its owner's account is closed.
    """
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
            Account(row.person_id, row.login, row.name, row.role, row.must_change, row.session_epoch, True),
            row.scope,
            courses[row.person_id],
            row.token_name,
        )
        for shown, row in rows.items()
    }
    return [uses.get(shown) for shown in hashes]


def revoke_token(store: Store, person_id: int, token_id: int, *, actor_id: int | None) -> bool:
    """End a token of that person; False: they have no such token that still holds."""
    with store.write() as connection:
        done = connection.execute(
            update(ApiTokenRow)
            .where(
                ApiTokenRow.id == token_id,
                ApiTokenRow.person_id == person_id,
                ApiTokenRow.revoked_at.is_(None),
            )
            .values(revoked_at=database_now())
        ).rowcount
        if done:
            audit(connection, f"person:{person_id}", "token_revoked", actor_id=actor_id, token_id=token_id)
        return bool(done)


def revoke_shown(store: Store, token: str, *, actor_id: int | None) -> bool:
    """End the token that somebody shows; False: there is none that still holds."""
    with store.read() as connection:
        row = connection.execute(
            select(ApiTokenRow.id, ApiTokenRow.person_id).where(ApiTokenRow.token_hash == _hash(token))
        ).one_or_none()
    return row is not None and revoke_token(store, row.person_id, row.id, actor_id=actor_id)


def tokens_of(store: Store, person_id: int) -> tuple[TokenFacts, ...]:
    """All tokens of a person, newest first."""
    with store.read() as connection:
        rows = connection.execute(
            select(
                ApiTokenRow.id,
                ApiTokenRow.name,
                ApiTokenRow.prefix,
                ApiTokenRow.scope,
                ApiTokenRow.created_at,
                ApiTokenRow.expires_at,
                ApiTokenRow.revoked_at,
                ApiTokenRow.used_at,
            )
            .where(ApiTokenRow.person_id == person_id)
            .order_by(ApiTokenRow.id.desc())
        )
        return tuple(TokenFacts(*row) for row in rows)


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


# Made once: it is asked for with every request of a program, and making it takes longer than running it.
_USE = (
    select(
        ApiTokenRow.id,
        ApiTokenRow.token_hash,
        ApiTokenRow.scope,
        ApiTokenRow.name.label("token_name"),
        or_(ApiTokenRow.used_at.is_(None), ApiTokenRow.used_at < database_now(-_USE_S)).label("unused"),
        PersonRow.id.label("person_id"),
        PersonRow.login,
        PersonRow.name,
        PersonRow.role,
        PersonRow.must_change,
        PersonRow.session_epoch,
    )
    .join(PersonRow, PersonRow.id == ApiTokenRow.person_id)
    .where(
        ApiTokenRow.token_hash.in_(bindparam("shown", expanding=True)),
        ApiTokenRow.revoked_at.is_(None),
        or_(ApiTokenRow.expires_at.is_(None), ApiTokenRow.expires_at > database_now()),
        PersonRow.disabled_at.is_(None),
    )
)
_MARK = (
    update(ApiTokenRow)
    .where(
        ApiTokenRow.id.in_(
            select(ApiTokenRow.id)
            .where(ApiTokenRow.id.in_(bindparam("unused", expanding=True)))
            .order_by(ApiTokenRow.id)
            # Another process that holds one of them is just marking it.
            .with_for_update(skip_locked=True)
        )
    )
    .values(used_at=database_now())
)
