"""Accounts: making them, checking passwords, changing them. Knows no session and no cookie."""

from __future__ import annotations

import secrets
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from sqlalchemy import Connection, bindparam, delete, func, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from grader.errors import UsageError
from grader.store.clock import database_now
from grader.store.database import Store
from grader.store.events import audit
from grader.store.people import credentials
from grader.store.people.one_time_passwords import forget
from grader.store.tables import GroupRoleRow, PersonRow
from grader.store.tables.person import Role

MIN_PASSWORD, MAX_PASSWORD = 10, 256
# Without letters that are mistaken for each other when somebody reads them from a projector.
_READABLE = "abcdefghjkmnpqrstuvwxyz23456789"


@dataclass(frozen=True, slots=True)
class Account:
    """Who somebody is, without anything secret."""

    id: int
    login: str
    name: str
    role: Role
    must_change: bool
    session_epoch: int
    enabled: bool


def one_time_password() -> str:
    """A password to read out once: 60 bits, in groups."""
    letters = [secrets.choice(_READABLE) for _ in range(12)]
    return "-".join("".join(letters[start : start + 4]) for start in (0, 4, 8))


def one_time_hash(password: str) -> str:
    """A hash of a one-time password, which a class full of people does not wait for.

    Argon2 is slow for the sake of what people choose. Sixty random bits are out of reach of any guessing, whatever a
    guess costs; at the first sign-in it is hashed as slowly as all others, and replaced by its owner.
    """
    return _QUICK.hash(password)


def add_person(
    store: Store,
    login: str,
    name: str,
    role: Role = Role.LEARNER,
    *,
    password: str | None = None,
    must_change: bool = False,
    actor_id: int | None = None,
) -> int:
    """Make an account and return its id; without a password it can sign in with tokens only.

    Raises:
        UsageError: the login is taken or empty, or the password too short or too long.
    """
    login = _login(login)
    if not login:
        raise UsageError("an account needs a login name")
    # Hashed before the transaction: it takes as long as it is meant to.
    hashed = None if password is None else _hash(password)
    try:
        with store.write() as connection:
            person_id = connection.execute(
                insert(PersonRow)
                .values(
                    login=login,
                    name=name,
                    role=role,
                    password_hash=hashed,
                    must_change=must_change,
                    created_at=database_now(),
                )
                .returning(PersonRow.id)
            ).scalar_one()
            audit(connection, f"person:{person_id}", "person_added", actor_id=actor_id, role=role)
            return person_id
    except IntegrityError:
        raise UsageError(f"the login {login} is taken") from None


def check_password(store: Store, login: str, password: str) -> Account | None:
    """The account that this login and password open, or None; takes equally long either way.

    All but what an account takes whose hash costs something else, until its owner has signed in once more.
    """
    with store.read() as connection:
        row = connection.execute(
            ACCOUNT.add_columns(PersonRow.password_hash).where(PersonRow.login == _login(login))
        )
        found = row.one_or_none()
    hashed = found.password_hash if found is not None else None
    account = None if found is None else Account(*found[:7])
    if hashed is not None and _hasher().check_needs_rehash(hashed):
        # Quick to check: without this, the time taken would tell that the login is there.
        _verify(_decoy(), password)
    good = _verify(hashed or _decoy(), password) and hashed is not None
    if account is None or not good or not account.enabled:
        return None
    if hashed is not None and _hasher().check_needs_rehash(hashed):
        with store.write() as connection:
            connection.execute(
                update(PersonRow)
                .where(PersonRow.id == account.id, PersonRow.password_hash == hashed)
                .values(password_hash=_hasher().hash(password))
            )
    return account


def set_password(
    store: Store, person_id: int, password: str, *, must_change: bool, actor_id: int | None
) -> None:
    """Give an account another password; all its sessions and tokens end with the one before.

    Raises:
        UsageError: the password is too short or too long, or there is no such account.
    """
    hashed = _hash(password)
    with store.write() as connection:
        _change(connection, person_id, password_hash=hashed, must_change=must_change)
        credentials.end_all(connection, [person_id])
        forget(connection, [person_id])
        audit(connection, f"person:{person_id}", "password_changed", actor_id=actor_id)


def set_enabled(store: Store, person_id: int, enabled: bool, *, actor_id: int | None) -> None:
    """Open or close an account; closing ends its sessions.

    Raises:
        UsageError: there is no such account.
    """
    with store.write() as connection:
        _change(
            connection,
            person_id,
            disabled_at=None if enabled else database_now(),
            session_epoch=PersonRow.session_epoch + 1,
        )
        audit(connection, f"person:{person_id}", "enabled" if enabled else "disabled", actor_id=actor_id)


def set_role(store: Store, person_id: int, role: Role, *, actor_id: int | None) -> None:
    """Give an account another role and end its sessions.

    Raises:
        UsageError: there is no such account.
    """
    with store.write() as connection:
        # From now on it is so because somebody said so, whatever groups say.
        connection.execute(
            delete(GroupRoleRow).where(GroupRoleRow.person_id == person_id, GroupRoleRow.course_id.is_(None))
        )
        _change(connection, person_id, role=role, session_epoch=PersonRow.session_epoch + 1)
        audit(connection, f"person:{person_id}", "role_changed", actor_id=actor_id, role=role)


def end_sessions(store: Store, person_id: int, *, actor_id: int | None) -> None:
    """Sign an account out everywhere: out of every browser, and out of every program that has a token of it."""
    with store.write() as connection:
        credentials.end_all(connection, [person_id])
        audit(connection, f"person:{person_id}", "sessions_ended", actor_id=actor_id)


def account(store: Store, person_id: int) -> Account | None:
    """The account of that id, or None."""
    with store.read() as connection:
        row = connection.execute(_BY_ID, {"person": person_id}).one_or_none()
    return None if row is None else Account(*row)


def account_by_login(store: Store, login: str) -> Account | None:
    """The account of that login, or None."""
    with store.read() as connection:
        row = connection.execute(ACCOUNT.where(PersonRow.login == _login(login))).one_or_none()
    return None if row is None else Account(*row)


def names_of(store: Store, person_ids: Collection[int]) -> dict[int, str]:
    """What these people are called; who was erased is not in it."""
    with store.read() as connection:
        rows = connection.execute(select(PersonRow.id, PersonRow.name).where(PersonRow.id.in_(person_ids)))
        return {row.id: row.name for row in rows}


def accounts(store: Store, search: str = "", *, start: int = 0, limit: int = 100) -> tuple[Account, ...]:
    """Accounts by name, page by page from number `start` on, whose login or name holds the text, in whatever case."""
    by_name = (func.lower(PersonRow.name), PersonRow.name, PersonRow.id)
    statement = ACCOUNT.order_by(*by_name).offset(start).limit(limit)
    if search.strip():
        wanted = search.strip().casefold()
        statement = statement.where(
            or_(
                PersonRow.login.contains(wanted, autoescape=True),
                func.lower(PersonRow.name).contains(wanted, autoescape=True),
            )
        )
    with store.read() as connection:
        return tuple(Account(*row) for row in connection.execute(statement))


def any_admin(store: Store) -> bool:
    """Whether somebody can administer this site at all; the first start makes such an account if not."""
    with store.read() as connection:
        found = connection.execute(select(PersonRow.id).where(PersonRow.role == Role.ADMIN).limit(1))
        return found.scalar_one_or_none() is not None


def _change(connection: Connection, person_id: int, **values: object) -> None:
    if not connection.execute(update(PersonRow).where(PersonRow.id == person_id).values(**values)).rowcount:
        raise UsageError(f"there is no account {person_id}")


def _login(text: str) -> str:
    return text.strip().casefold()


def _hash(password: str) -> str:
    if not MIN_PASSWORD <= len(password) <= MAX_PASSWORD:
        raise UsageError(f"a password has {MIN_PASSWORD} to {MAX_PASSWORD} characters")
    try:
        return _hasher().hash(password)
    except UnicodeEncodeError:
        raise UsageError("this password holds characters that nobody could type again") from None


def _verify(hashed: str, password: str) -> bool:
    try:
        return len(password) <= MAX_PASSWORD and _hasher().verify(hashed, password)
    except (VerificationError, InvalidHashError, UnicodeEncodeError):
        return False


def signed_in(store: Store, person_id: int) -> None:
    """Note that somebody has just signed in; a one-time password is used with that, and no longer handed out."""
    with store.write() as connection:
        forget(connection, [person_id])
        connection.execute(
            update(PersonRow).where(PersonRow.id == person_id).values(signed_in_at=database_now())
        )


@cache
def _hasher() -> PasswordHasher:
    # The least that OWASP's Password Storage Cheat Sheet names for Argon2id: 19 MiB, 2 passes, 1 lane. Hashes that cost
    # something else are made anew when their owner signs in next.
    return PasswordHasher(time_cost=2, memory_cost=19_456, parallelism=1)


@cache
def _decoy() -> str:
    # Verified where there is no account, so that the time taken does not tell which logins exist.
    return _hasher().hash(secrets.token_hex(16))


_QUICK = PasswordHasher(time_cost=1, memory_cost=1024, parallelism=1)
ACCOUNT = select(
    PersonRow.id,
    PersonRow.login,
    PersonRow.name,
    PersonRow.role,
    PersonRow.must_change,
    PersonRow.session_epoch,
    PersonRow.disabled_at.is_(None),
)
_BY_ID = ACCOUNT.where(PersonRow.id == bindparam("person"))
