"""Tokens of workers that reach nothing but the service, and what a lease of theirs is.

A token has a name, and every worker that shows it is called `<token>/<worker>`: names of workers beside the database
have no slash, so that no token reaches what they hold, nor what the workers of another token hold.
"""

from __future__ import annotations

import re

from sqlalchemy import select

from grader.errors import UsageError
from grader.store.database import Store
from grader.store.people.people import add_person
from grader.store.people.tokens import TokenFacts, issue_token, revoke_token, tokens_of
from grader.store.tables import AttemptRow, PersonRow
from grader.store.tables.api_token import Scope
from grader.store.tables.attempt import AttemptState
from grader.store.tables.person import Role

OWNER = "grader-workers"
"""Login of the account that they belong to; it has no password."""
_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{0,39}")


def issue_worker_token(store: Store, name: str, *, lifetime_s: float | None) -> str:
    """A new token of that name, to be shown once; `lifetime_s` None: it holds until revoked.

    Raises:
        UsageError: that is no name, or a token that holds has it.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(f"`{name}` is no name for a token: up to 40 small letters, digits, dots and dashes")
    if _live(store, name) is not None:
        raise UsageError(f"there is a token {name}: revoke it first, or choose another name")
    owner = _owner(store)
    if owner is None:
        owner = add_person(store, OWNER, "Workers", Role.CI)
    return issue_token(store, owner, name, Scope.JUDGE, lifetime_s=lifetime_s, actor_id=None)


def worker_tokens(store: Store) -> tuple[TokenFacts, ...]:
    """All that were not revoked, newest first."""
    owner = _owner(store)
    known = () if owner is None else tokens_of(store, owner)
    return tuple(one for one in known if one.scope is Scope.JUDGE and one.revoked_at is None)


def revoke_worker_token(store: Store, name: str) -> bool:
    """End the token of that name; False: there is none. What its workers have in hand is queued again."""
    owner, found = _owner(store), _live(store, name)
    return owner is not None and found is not None and revoke_token(store, owner, found.id, actor_id=None)


def worker_name(token: str, worker: str) -> str:
    """What a worker that shows this token is called everywhere."""
    return f"{token}/{worker}"


def state_under_lease(store: Store, token: str, attempt_id: int, lease_token: int) -> AttemptState | None:
    """How an attempt stands whose last lease this is, and was given to a worker of that token; None: it is not."""
    with store.read() as connection:
        row = connection.execute(
            select(AttemptRow.state, AttemptRow.worker).where(
                AttemptRow.id == attempt_id, AttemptRow.lease_token == lease_token
            )
        ).one_or_none()
    ours = row is not None and row.worker is not None and row.worker.startswith(worker_name(token, ""))
    return row.state if row is not None and ours else None


def _live(store: Store, name: str) -> TokenFacts | None:
    return next((one for one in worker_tokens(store) if one.name == name), None)


def _owner(store: Store) -> int | None:
    with store.read() as connection:
        return connection.execute(
            select(PersonRow.id).where(PersonRow.login == OWNER, PersonRow.role == Role.CI)
        ).scalar_one_or_none()
