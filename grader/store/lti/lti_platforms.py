"""Learning platforms: who may launch us, and the links by which one registers itself. Asks none of them anything."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, Select, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from grader.errors import UsageError
from grader.store.clock import database_now
from grader.store.database import Store
from grader.store.events import audit
from grader.store.tables import LtiContextRow, LtiPlatformRow, LtiRegistrationRow

REGISTRATION_S = 3600.0
"""How long a registration link holds."""
SUBJECT = "lti"
"""Of audit events about platforms."""


@dataclass(frozen=True, slots=True)
class PlatformTerms:
    """How a platform is known and asked, and what it may; see `grader.store.tables.lti_platform`."""

    name: str
    issuer: str
    client_id: str
    auth_url: str
    token_url: str
    jwks_url: str
    token_audience: str | None = None
    deployments: tuple[str, ...] = ()
    link_by_address: bool = False
    make_courses: bool = False


@dataclass(frozen=True, slots=True)
class LearningPlatform:
    """A platform.

    Attributes:
        asked_deployment: a place in it that launched us truly and that nobody allowed yet; None: there is none.
    """

    id: int
    enabled: bool
    asked_deployment: str | None
    created_at: datetime
    terms: PlatformTerms


def add_platform(store: Store, terms: PlatformTerms, *, actor_id: int | None) -> int:
    """Let a platform launch us, and return its id.

    Raises:
        UsageError: it is there already.
    """
    try:
        with store.write() as connection:
            return add_platform_within(connection, terms, actor_id=actor_id)
    except IntegrityError:
        raise UsageError(
            f"there is a platform {terms.issuer} with the client id {terms.client_id} already"
        ) from None


def add_platform_within(connection: Connection, terms: PlatformTerms, *, actor_id: int | None) -> int:
    """As `add_platform`, within a transaction of the caller's; one that is there is the database's own error."""
    platform_id = connection.execute(
        insert(LtiPlatformRow)
        .values(created_at=database_now(), **_values(terms))
        .returning(LtiPlatformRow.id)
    ).scalar_one()
    audit(connection, SUBJECT, "platform_added", actor_id=actor_id, platform=terms.name, issuer=terms.issuer)
    return platform_id


def change_platform(store: Store, platform_id: int, terms: PlatformTerms, *, actor_id: int | None) -> None:
    """Know or ask a platform in another way from now on.

    Raises:
        UsageError: another one has that issuer and client id, or there is no such platform.
    """
    try:
        with store.write() as connection:
            changed = update(LtiPlatformRow).where(LtiPlatformRow.id == platform_id)
            if not connection.execute(changed.values(asked_deployment=None, **_values(terms))).rowcount:
                raise UsageError(f"there is no platform {platform_id}")
            audit(connection, SUBJECT, "platform_changed", actor_id=actor_id, platform=terms.name)
    except IntegrityError:
        raise UsageError(f"another platform is {terms.issuer} with the client id {terms.client_id}") from None


def set_platform_enabled(store: Store, platform_id: int, enabled: bool, *, actor_id: int | None) -> None:
    """Let a platform launch us and be told grades, or neither."""
    with store.write() as connection:
        connection.execute(
            update(LtiPlatformRow)
            .where(LtiPlatformRow.id == platform_id)
            .values(disabled_at=None if enabled else database_now())
        )
        kind = "platform_enabled" if enabled else "platform_disabled"
        audit(connection, SUBJECT, kind, actor_id=actor_id, platform_id=platform_id)


def delete_platform(store: Store, platform_id: int, *, actor_id: int | None) -> None:
    """Forget a platform with its connections; courses, accounts and grades stay."""
    with store.write() as connection:
        connection.execute(delete(LtiPlatformRow).where(LtiPlatformRow.id == platform_id))
        audit(connection, SUBJECT, "platform_deleted", actor_id=actor_id, platform_id=platform_id)


def platform(store: Store, platform_id: int) -> LearningPlatform | None:
    """The platform of that id, or None."""
    with store.read() as connection:
        return read_platform(connection, platform_id)


def read_platform(connection: Connection, platform_id: int) -> LearningPlatform | None:
    """The same, within a transaction of the caller's."""
    row = connection.execute(_PLATFORM.where(LtiPlatformRow.id == platform_id)).one_or_none()
    return None if row is None else _platform(row)


def platforms(store: Store) -> tuple[LearningPlatform, ...]:
    """All platforms, by name."""
    with store.read() as connection:
        rows = connection.execute(_PLATFORM.order_by(LtiPlatformRow.name, LtiPlatformRow.id)).all()
    return tuple(_platform(row) for row in rows)


def platforms_of_issuer(store: Store, issuer: str, client_id: str = "") -> tuple[LearningPlatform, ...]:
    """The platforms that may launch us under this name; `client_id` "": whatever they call us."""
    statement = _PLATFORM.where(LtiPlatformRow.issuer == issuer, LtiPlatformRow.disabled_at.is_(None))
    if client_id:
        statement = statement.where(LtiPlatformRow.client_id == client_id)
    with store.read() as connection:
        return tuple(_platform(row) for row in connection.execute(statement).all())


def num_connected(store: Store) -> dict[int, int]:
    """How many courses each platform is connected to; those with none are not in it."""
    with store.read() as connection:
        rows = connection.execute(
            select(LtiContextRow.platform_id, func.count()).group_by(LtiContextRow.platform_id)
        )
        return {platform_id: number for platform_id, number in rows}  # noqa: C416 - rows are no pairs for mypy


def note_asked_deployment(store: Store, platform_id: int, deployment: str) -> None:
    """Remember that a place in a platform launched us which nobody allowed, for its administrator to decide."""
    with store.write() as connection:
        connection.execute(
            update(LtiPlatformRow)
            .where(LtiPlatformRow.id == platform_id)
            .values(asked_deployment=deployment[:255])
        )


def allow_deployment(store: Store, platform_id: int, deployment: str, *, actor_id: int | None) -> None:
    """Let a place in a platform launch us from now on."""
    with store.write() as connection:
        found = read_platform(connection, platform_id)
        if found is None:
            return
        allowed = list(dict.fromkeys([*found.terms.deployments, deployment]))
        connection.execute(
            update(LtiPlatformRow)
            .where(LtiPlatformRow.id == platform_id)
            .values(deployments=allowed, asked_deployment=None)
        )
        told = {"platform": found.terms.name, "deployment": deployment}
        audit(connection, SUBJECT, "deployment_allowed", actor_id=actor_id, **told)


def offer_registration(store: Store, *, actor_id: int | None) -> str:
    """A token with which one platform may register itself within `REGISTRATION_S`, once."""
    token = secrets.token_urlsafe(24)
    with store.write() as connection:
        connection.execute(delete(LtiRegistrationRow).where(LtiRegistrationRow.expires_at < database_now()))
        connection.execute(
            insert(LtiRegistrationRow).values(
                digest=_digest(token), created_at=database_now(), expires_at=database_now(REGISTRATION_S)
            )
        )
        audit(connection, SUBJECT, "registration_offered", actor_id=actor_id)
    return token


def registration_open(store: Store, token: str) -> bool:
    """Whether that token may be used."""
    with store.read() as connection:
        return connection.execute(_open(token)).scalar_one_or_none() is not None


def take_registration(store: Store, token: str) -> bool:
    """Use that token; False: it is unknown, too old, or was used."""
    with store.write() as connection:
        return bool(
            connection.execute(
                update(LtiRegistrationRow)
                .where(LtiRegistrationRow.digest.in_(_open(token)))
                .values(used_at=database_now())
            ).rowcount
        )


def give_back_registration(store: Store, token: str) -> None:
    """Let that token be used after all: nothing came of it."""
    with store.write() as connection:
        unused = LtiRegistrationRow.platform_id.is_(None)
        connection.execute(
            update(LtiRegistrationRow)
            .where(LtiRegistrationRow.digest == _digest(token), unused)
            .values(used_at=None)
        )


def register(store: Store, token: str, terms: PlatformTerms) -> int:
    """Let the platform that used this token launch us.

    Raises:
        UsageError: it is there already.
    """
    platform_id = add_platform(store, terms, actor_id=None)
    with store.write() as connection:
        connection.execute(
            update(LtiRegistrationRow)
            .where(LtiRegistrationRow.digest == _digest(token))
            .values(platform_id=platform_id)
        )
    return platform_id


def _values(terms: PlatformTerms) -> dict[str, object]:
    found = {one.name: getattr(terms, one.name) for one in fields(terms)}
    return {**found, "deployments": list(terms.deployments)}


def _open(token: str) -> Select[str]:
    return select(LtiRegistrationRow.digest).where(
        LtiRegistrationRow.digest == _digest(token),
        LtiRegistrationRow.used_at.is_(None),
        LtiRegistrationRow.expires_at > database_now(),
    )


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _platform(row: Row[*tuple[Any, ...]]) -> LearningPlatform:
    said = {one.name: getattr(row, one.name) for one in fields(PlatformTerms)}
    terms = PlatformTerms(**{**said, "deployments": tuple(row.deployments)})
    return LearningPlatform(row.id, row.enabled, row.asked_deployment, row.created_at, terms)


_PLATFORM = select(
    LtiPlatformRow.id,
    LtiPlatformRow.disabled_at.is_(None).label("enabled"),
    LtiPlatformRow.asked_deployment,
    LtiPlatformRow.created_at,
    *(getattr(LtiPlatformRow, one.name) for one in fields(PlatformTerms)),
)
