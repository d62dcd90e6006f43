"""Sessions of browsers that were ended before their time, and whom a session that goes on belongs to.

A session is the browser's own signed word; what is kept here is only which of them no longer hold. Knows no cookie.
"""

from __future__ import annotations

import hashlib

from sqlalchemy import Connection, bindparam, delete, exists

from grader.store.clock import database_now
from grader.store.database import Store
from grader.store.people.own_courses import OwnCourse, courses_of_each
from grader.store.people.people import ACCOUNT, Account
from grader.store.tables import EndedSessionRow, PersonRow
from grader.store.upsert import upsert


def end_session(store: Store, nonce: str, *, lifetime_s: float) -> None:
    """End the one session of that nonce, whoever has a copy of it, for the `lifetime_s` that its cookie may hold."""
    with store.write() as connection:
        connection.execute(delete(EndedSessionRow).where(EndedSessionRow.forget_at < database_now()))
        ended = {"nonce_hash": _digest(nonce), "forget_at": database_now(lifetime_s)}
        connection.execute(upsert(connection, EndedSessionRow, ["nonce_hash"], ended, update=["forget_at"]))


def account_in_session(store: Store, person_id: int, epoch: int, nonce: str) -> Account | None:
    """The account of a session that still holds, or None: it was ended, or the account is closed or gone."""
    with store.read() as connection:
        return read_account(connection, person_id, epoch, nonce)


def visitor_in_session(
    store: Store, person_id: int, epoch: int, nonce: str
) -> tuple[Account, tuple[OwnCourse, ...]] | None:
    """The same with the courses that they take part in: every request of a browser asks for both at once."""
    with store.read() as connection:
        account = read_account(connection, person_id, epoch, nonce)
        return None if account is None else (account, courses_of_each(connection, [account.id])[account.id])


def read_account(connection: Connection, person_id: int, epoch: int, nonce: str) -> Account | None:
    """As `account_in_session`, within a transaction of the caller's."""
    row = connection.execute(
        _IN_SESSION, {"person": person_id, "epoch": epoch, "nonce": _digest(nonce)}
    ).one_or_none()
    return None if row is None else Account(*row)


def _digest(nonce: str) -> str:
    return hashlib.sha256(nonce.encode()).hexdigest()


# Made once: every request of a browser asks for it.
_IN_SESSION = ACCOUNT.where(
    PersonRow.id == bindparam("person"),
    PersonRow.session_epoch == bindparam("epoch"),
    PersonRow.disabled_at.is_(None),
    ~exists().where(EndedSessionRow.nonce_hash == bindparam("nonce")),
)
