"""A whole list of people at once: accounts made, enrolled and given one-time passwords, all of them or none.

One transaction whatever the length of the list, so that nobody is left half enrolled by a request that was cut off.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, insert, select, update
from sqlalchemy.exc import IntegrityError

from grader.errors import UsageError
from grader.store import credentials
from grader.store.archived_courses import refuse_archived
from grader.store.care import may_entrust, note_memberships
from grader.store.clock import database_now
from grader.store.database import Store
from grader.store.people import one_time_hash
from grader.store.tables import EnrolmentRow, EventRow, PersonRow
from grader.store.tables.person import Role

_TRIES = 3


@dataclass(frozen=True, slots=True)
class ListedAccount:
    """One person of a list; `password` is theirs if the account is new."""

    login: str
    name: str
    password: str


@dataclass(frozen=True, slots=True)
class TakenOver:
    """What became of one of them: who they are now, and whether account and enrolment are new."""

    login: str
    name: str
    new_account: bool
    enrolled: bool


def take_over(
    store: Store, course_id: int, listed: Sequence[ListedAccount], *, actor_id: int | None
) -> tuple[TakenOver, ...]:
    """Make the accounts that are missing, and enrol as a learner whoever takes no part yet; in the list's order.

    An account that is there keeps its name, its password and the role that it has in the course.

    Raises:
        UsageError: others made the same accounts over and over at the same moment.
    """
    # Hashed before the transaction, so that nobody waits for it.
    hashes = {one.login: one_time_hash(one.password) for one in listed}
    for _ in range(_TRIES):
        try:
            with store.write() as connection:
                return _take_over(connection, course_id, listed, hashes, actor_id)
        except IntegrityError:
            # Somebody else made one of these accounts just now: next time it is there.
            continue
    raise UsageError("others bring the same people at this moment; try again")


def known_names(store: Store, logins: Collection[str]) -> dict[str, tuple[int, str]]:
    """Id and name of the accounts among these logins that are there."""
    with store.read() as connection:
        return _known(connection, logins)


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


def reissue(
    store: Store, passwords: Mapping[int, str], *, actor_id: int | None
) -> dict[int, tuple[str, str]]:
    """Give these accounts other one-time passwords, where they still have one; login and name of those that got it.

    Who has chosen a password meanwhile keeps it.
    """
    hashes = {person_id: one_time_hash(password) for person_id, password in passwords.items()}
    with store.write() as connection:
        rows = connection.execute(
            select(PersonRow.id, PersonRow.login, PersonRow.name)
            .where(PersonRow.id.in_(hashes), PersonRow.must_change)
            .order_by(PersonRow.id)
            .with_for_update()
        ).all()
        if rows:
            connection.execute(
                update(PersonRow)
                .where(PersonRow.id == bindparam("person"))
                .values(password_hash=bindparam("hashed")),
                [{"person": row.id, "hashed": hashes[row.id]} for row in rows],
            )
            credentials.end_all(connection, [row.id for row in rows])
            _audit(connection, [(f"person:{row.id}", "password_changed", {}) for row in rows], actor_id)
        return {row.id: (row.login, row.name) for row in rows}


def _take_over(
    connection: Connection,
    course_id: int,
    listed: Sequence[ListedAccount],
    hashes: Mapping[str, str],
    actor_id: int | None,
) -> tuple[TakenOver, ...]:
    refuse_archived(connection, f"course:{course_id}", ("enrolled",))
    there = _known(connection, hashes)
    new = [one for one in listed if one.login not in there]
    if new:
        made = connection.execute(
            insert(PersonRow)
            .values(created_at=database_now())
            .returning(PersonRow.id, sort_by_parameter_order=True),
            [
                {
                    "login": one.login,
                    "name": one.name,
                    "role": Role.LEARNER,
                    "password_hash": hashes[one.login],
                    "must_change": True,
                }
                for one in new
            ],
        ).scalars()
        known = there | {one.login: (person, one.name) for one, person in zip(new, made, strict=True)}
        added = {"role": Role.LEARNER}
        _audit(
            connection, [(f"person:{known[one.login][0]}", "person_added", added) for one in new], actor_id
        )
    else:
        known = there
    inside = set(
        connection.execute(
            select(EnrolmentRow.person_id).where(EnrolmentRow.course_id == course_id)
        ).scalars()
    )
    outside = [known[one.login][0] for one in listed if known[one.login][0] not in inside]
    if outside:
        connection.execute(
            insert(EnrolmentRow).values(created_at=database_now()),
            [{"course_id": course_id, "person_id": one, "role": Role.LEARNER} for one in outside],
        )
        _audit(
            connection,
            [
                (f"course:{course_id}", "enrolled", {"person_id": one, "role": Role.LEARNER})
                for one in outside
            ],
            actor_id,
        )
        # An account that was there before is not the course's, only because somebody knew its login.
        any_of_them = may_entrust(connection, actor_id)
        made_here = {known[one.login][0] for one in new}
        for entrusted in (True, False):
            chosen = [one for one in outside if (any_of_them or one in made_here) is entrusted]
            note_memberships(connection, course_id, chosen, role=Role.LEARNER, entrusted=entrusted)
    enrolled = set(outside)
    return tuple(
        TakenOver(one.login, known[one.login][1], one.login not in there, known[one.login][0] in enrolled)
        for one in listed
    )


def _known(connection: Connection, logins: Collection[str]) -> dict[str, tuple[int, str]]:
    rows = connection.execute(
        select(PersonRow.id, PersonRow.login, PersonRow.name).where(PersonRow.login.in_(logins))
    )
    return {row.login: (row.id, row.name) for row in rows}


def _audit(
    connection: Connection, told: Sequence[tuple[str, str, Mapping[str, object]]], actor_id: int | None
) -> None:
    connection.execute(
        insert(EventRow).values(at=database_now()),
        [
            {"subject": subject, "kind": kind, "actor_id": actor_id, "data": dict(data)}
            for subject, kind, data in told
        ],
    )
