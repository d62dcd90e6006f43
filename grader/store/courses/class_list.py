"""Many people at once: accounts made, enrolled and given their details, all of them or none."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, insert, select
from sqlalchemy.exc import IntegrityError

from grader.errors import UsageError
from grader.store.clock import database_now
from grader.store.courses.archived_courses import refuse_archived
from grader.store.courses.enrolment_details import EnrolmentDetails, set_details_within
from grader.store.database import Store
from grader.store.people.care import may_entrust, note_memberships
from grader.store.people.one_time_passwords import Seal, keep
from grader.store.people.people import one_time_hash
from grader.store.tables import EnrolmentRow, EventRow, PersonRow
from grader.store.tables.person import COURSE_ROLES, Role

_TRIES = 3


@dataclass(frozen=True, slots=True)
class ListedAccount:
    """One person of a list.

    Attributes:
        password: theirs if the account is new; None: it is made without any.
        role: what they become in the course if they take no part yet.
        email: of a new account; section, external_id: None: the list says nothing of it, and what is there stays.
    """

    login: str
    name: str
    password: str | None
    role: Role = Role.LEARNER
    email: str | None = None
    section: str | None = None
    external_id: str | None = None


@dataclass(frozen=True, slots=True)
class TakenOver:
    """What became of one of them: who they are now, whether account and enrolment are new, or details changed."""

    person_id: int
    login: str
    name: str
    new_account: bool
    enrolled: bool
    changed: bool


def take_over(
    store: Store,
    course_id: int,
    listed: Sequence[ListedAccount],
    *,
    seal: Seal | None = None,
    actor_id: int | None,
) -> tuple[TakenOver, ...]:
    """Make the accounts that are missing, and enrol whoever takes no part yet; in the list's order.

    An account that is there keeps its name, its password and the role that it has in the course.

    Args:
        store, course_id, listed: where, and whom.
        seal: encrypts one-time passwords, so that they can be fetched again; None: they are not kept.
        actor_id: who brings the list; None: a command on our machine.

    Raises:
        UsageError: others made the same accounts over and over at the same moment.
    """
    # Hashed before the transaction, so that nobody waits for it.
    hashes = hashes_of(listed)
    for _ in range(_TRIES):
        try:
            with store.write() as connection:
                return take_over_within(connection, course_id, listed, hashes, seal=seal, actor_id=actor_id)
        except IntegrityError:
            # Somebody else made one of these accounts just now: next time it is there.
            continue
    raise UsageError("others bring the same people at this moment; try again")


def hashes_of(listed: Sequence[ListedAccount]) -> dict[str, str | None]:
    """What `take_over_within` keeps of their passwords, by login."""
    return {one.login: None if one.password is None else one_time_hash(one.password) for one in listed}


def known_names(store: Store, logins: Collection[str]) -> dict[str, tuple[int, str]]:
    """Id and name of the accounts among these logins that are there."""
    with store.read() as connection:
        return _known(connection, logins)


def take_over_within(
    connection: Connection,
    course_id: int,
    listed: Sequence[ListedAccount],
    hashes: Mapping[str, str | None],
    *,
    seal: Seal | None = None,
    actor_id: int | None,
) -> tuple[TakenOver, ...]:
    """As `take_over`, within a transaction of the caller's; `hashes`: of `hashes_of`.

    Raises:
        IntegrityError: somebody else made one of the accounts just now; the transaction is over.
    """
    refuse_archived(connection, f"course:{course_id}", ("enrolled",))
    known = _known(connection, hashes)
    new = [one for one in listed if one.login not in known]
    known |= _make_accounts(connection, new, hashes, actor_id)
    if seal is not None:
        made = {known[one.login][0]: seal(one.password) for one in new if one.password is not None}
        keep(connection, course_id, made)
    inside = set(
        connection.execute(
            select(EnrolmentRow.person_id).where(EnrolmentRow.course_id == course_id)
        ).scalars()
    )
    outside = [one for one in listed if known[one.login][0] not in inside]
    _enrol(connection, course_id, {known[one.login][0]: one for one in outside}, actor_id)
    # An account that was there before is not the course's, only because somebody knew its login.
    any_of_them, made_here = may_entrust(connection, actor_id), {one.login for one in new}
    for role in COURSE_ROLES:
        for entrusted in (True, False):
            chosen = [
                known[one.login][0]
                for one in outside
                if one.role is role and (any_of_them or one.login in made_here) is entrusted
            ]
            note_memberships(connection, course_id, chosen, role=role, entrusted=entrusted)
    changed = _change_details(connection, course_id, {known[one.login][0]: one for one in listed}, actor_id)
    enrolled = {one.login for one in outside}
    return tuple(
        TakenOver(
            *known[one.login][:1],
            one.login,
            known[one.login][1],
            one.login in made_here,
            one.login in enrolled,
            known[one.login][0] in changed,
        )
        for one in listed
    )


def _make_accounts(
    connection: Connection,
    new: Sequence[ListedAccount],
    hashes: Mapping[str, str | None],
    actor_id: int | None,
) -> dict[str, tuple[int, str]]:
    if not new:
        return {}
    made = connection.execute(
        insert(PersonRow)
        .values(created_at=database_now())
        .returning(PersonRow.id, sort_by_parameter_order=True),
        [
            {
                "login": one.login,
                "name": one.name,
                "email": one.email,
                "role": Role.LEARNER,
                "password_hash": hashes[one.login],
                "must_change": hashes[one.login] is not None,
            }
            for one in new
        ],
    ).scalars()
    known = {one.login: (int(person), one.name) for one, person in zip(new, made, strict=True)}
    told = [(f"person:{person}", "person_added", {"role": Role.LEARNER}) for person, _ in known.values()]
    _audit(connection, told, actor_id)
    return known


def _enrol(
    connection: Connection, course_id: int, outside: Mapping[int, ListedAccount], actor_id: int | None
) -> None:
    if not outside:
        return
    connection.execute(
        insert(EnrolmentRow).values(created_at=database_now()),
        [
            {
                "course_id": course_id,
                "person_id": person,
                "role": one.role,
                "section": one.section,
                "external_id": one.external_id,
            }
            for person, one in outside.items()
        ],
    )
    told = [
        (f"course:{course_id}", "enrolled", {"person_id": person, "role": one.role})
        for person, one in outside.items()
    ]
    _audit(connection, told, actor_id)


def _change_details(
    connection: Connection, course_id: int, listed: Mapping[int, ListedAccount], actor_id: int | None
) -> set[int]:
    """What the list says of sections and ids; returns whose is another than before."""
    rows = connection.execute(
        select(EnrolmentRow.person_id, EnrolmentRow.section, EnrolmentRow.external_id).where(
            EnrolmentRow.course_id == course_id, EnrolmentRow.person_id.in_(listed)
        )
    )
    wanted = {
        row.person_id: EnrolmentDetails(
            listed[row.person_id].section or row.section,
            listed[row.person_id].external_id or row.external_id,
        )
        for row in rows
    }
    return set_details_within(connection, course_id, wanted, actor_id=actor_id)


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
