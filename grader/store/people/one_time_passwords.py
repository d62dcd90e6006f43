"""One-time passwords that were handed out and not used yet, sealed by the caller. Knows neither key nor password."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from grader.store.clock import database_now
from grader.store.database import Store
from grader.store.people import credentials
from grader.store.tables import EnrolmentRow, EventRow, OneTimePasswordRow, PersonRow
from grader.store.tables.person import Role
from grader.store.upsert import upsert_statement

KEPT_S = 7 * 86400.0
"""How long one can be fetched again."""
Seal = Callable[[str], str]
"""Encrypts a one-time password; whoever may read it again has what opens it."""


@dataclass(frozen=True, slots=True)
class NewPassword:
    """A one-time password: as it is checked, and as it is kept to be fetched again."""

    hashed: str
    sealed: str


@dataclass(frozen=True, slots=True)
class SealedPassword:
    """The one-time password of somebody who takes part."""

    person_id: int
    login: str
    name: str
    section: str | None
    sealed: str


def keep(connection: Connection, course_id: int, sealed: Mapping[int, str]) -> None:
    """Keep these people's last one-time passwords, in the transaction that makes them; whatever is too old goes."""
    connection.execute(delete(OneTimePasswordRow).where(OneTimePasswordRow.expires_at <= database_now()))
    if sealed:
        expires_at = connection.execute(select(database_now(KEPT_S))).scalar_one()
        statement = upsert_statement(
            connection.dialect.name,
            OneTimePasswordRow,
            ("person_id",),
            ("course_id", "sealed", "expires_at"),
        )
        connection.execute(
            statement,
            [
                {"person_id": person, "course_id": course_id, "sealed": text, "expires_at": expires_at}
                for person, text in sealed.items()
            ],
        )


def forget(connection: Connection, person_ids: Sequence[int]) -> None:
    """Keep those of these people no longer: they were used, or open nothing any more."""
    connection.execute(delete(OneTimePasswordRow).where(OneTimePasswordRow.person_id.in_(person_ids)))


def reissue(
    store: Store,
    course_id: int,
    passwords: Mapping[int, NewPassword],
    *,
    chosen_too: bool = False,
    actor_id: int | None,
) -> dict[int, tuple[str, str]]:
    """Give these accounts other one-time passwords; login and name of those that got it. Their sessions and tokens end.

    Who has chosen a password meanwhile keeps it, unless `chosen_too`.
    """
    with store.write() as connection:
        rows = connection.execute(
            select(PersonRow.id, PersonRow.login, PersonRow.name)
            .where(PersonRow.id.in_(passwords), *(() if chosen_too else (PersonRow.must_change,)))
            .order_by(PersonRow.id)
            .with_for_update()
        ).all()
        if rows:
            connection.execute(
                update(PersonRow)
                .where(PersonRow.id == bindparam("person"))
                .values(password_hash=bindparam("hashed"), must_change=True),
                [{"person": row.id, "hashed": passwords[row.id].hashed} for row in rows],
            )
            credentials.end_all(connection, [row.id for row in rows])
            keep(connection, course_id, {row.id: passwords[row.id].sealed for row in rows})
            connection.execute(
                insert(EventRow).values(at=database_now(), kind="password_changed", actor_id=actor_id),
                [{"subject": f"person:{row.id}", "data": {}} for row in rows],
            )
        return {row.id: (row.login, row.name) for row in rows}


def without_own_password(store: Store, course_id: int) -> tuple[int, ...]:
    """The learners of a course who still have a one-time password, by name."""
    with store.read() as connection:
        return tuple(
            connection.execute(
                select(PersonRow.id)
                .join(EnrolmentRow, EnrolmentRow.person_id == PersonRow.id)
                .where(
                    EnrolmentRow.course_id == course_id,
                    EnrolmentRow.role == Role.LEARNER,
                    PersonRow.must_change,
                    PersonRow.disabled_at.is_(None),
                )
                .order_by(PersonRow.name, PersonRow.id)
            ).scalars()
        )


def kept(store: Store, course_id: int) -> tuple[SealedPassword, ...]:
    """Those that a course's staff may still hand out, by section and name."""
    with store.read() as connection:
        rows = connection.execute(
            select(
                PersonRow.id,
                PersonRow.login,
                PersonRow.name,
                EnrolmentRow.section,
                OneTimePasswordRow.sealed,
            )
            .join(OneTimePasswordRow, OneTimePasswordRow.person_id == PersonRow.id)
            .join(EnrolmentRow, EnrolmentRow.person_id == PersonRow.id)
            .where(
                OneTimePasswordRow.course_id == course_id,
                EnrolmentRow.course_id == course_id,
                OneTimePasswordRow.expires_at > database_now(),
                PersonRow.must_change,
            )
            .order_by(func.coalesce(EnrolmentRow.section, ""), PersonRow.name, PersonRow.id)
        )
        return tuple(SealedPassword(*row) for row in rows)
