"""Launches that were believed: each once, and for an hour something that can be gone on with. Believes none itself."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from grader.store.clock import database_now
from grader.store.database import Store
from grader.store.tables import LtiLaunchRow

KEPT_S = 3600.0
"""Longer than a token is believed that could be played again."""


@dataclass(frozen=True, slots=True)
class StoredLaunch:
    """A launch; `person_id` None: nobody was signed in by it yet."""

    id: int
    platform_id: int
    claims: dict[str, Any]
    person_id: int | None


def record_launch(store: Store, platform_id: int, nonce: str, claims: dict[str, Any]) -> int | None:
    """Keep a launch and return its id; None: one with this nonce was there before."""
    try:
        with store.write() as connection:
            connection.execute(delete(LtiLaunchRow).where(LtiLaunchRow.forget_at < database_now()))
            return connection.execute(
                _RECORD.values(
                    platform_id=platform_id,
                    nonce_digest=hashlib.sha256(nonce.encode()).hexdigest(),
                    claims=claims,
                    forget_at=database_now(KEPT_S),
                )
            ).scalar_one()
    except IntegrityError:
        return None


def launch(store: Store, launch_id: int) -> StoredLaunch | None:
    """The launch of that id, or None: there is none any more."""
    with store.read() as connection:
        row = connection.execute(
            select(
                LtiLaunchRow.id, LtiLaunchRow.platform_id, LtiLaunchRow.claims, LtiLaunchRow.person_id
            ).where(LtiLaunchRow.id == launch_id, LtiLaunchRow.forget_at > database_now())
        ).one_or_none()
    return None if row is None else StoredLaunch(*row)


def set_launched_person(store: Store, launch_id: int, person_id: int) -> None:
    """Say whom a launch signed in."""
    with store.write() as connection:
        connection.execute(
            update(LtiLaunchRow).where(LtiLaunchRow.id == launch_id).values(person_id=person_id)
        )


def move_launch(store: Store, launch_id: int) -> bool:
    """Go on with a launch in a window of its own; False: that was done before."""
    with store.write() as connection:
        moved = (
            update(LtiLaunchRow)
            .where(LtiLaunchRow.id == launch_id, LtiLaunchRow.moved_at.is_(None))
            .values(moved_at=database_now())
        )
        return bool(connection.execute(moved).rowcount)


_RECORD = insert(LtiLaunchRow).returning(LtiLaunchRow.id)
