"""Lists of people that are taken over in the background, some lines in one transaction: what was taken stays taken.

Whoever takes lines over, and however many do at once: lines count as done in the very transaction that does them, so
that after a crash somebody goes on where it stopped. Does not know the key that seals passwords.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, insert, select, update
from sqlalchemy.exc import DBAPIError, IntegrityError

from grader.store.clock import database_now
from grader.store.courses.class_list import ListedAccount, hashes_of, take_over_within
from grader.store.database import Store
from grader.store.events import audit
from grader.store.people.one_time_passwords import Seal
from grader.store.people.people import one_time_password
from grader.store.people.personal_invitations import PersonalInvitation, invite_each
from grader.store.tables import PersonRow, RosterImportRow
from grader.store.tables.person import Role
from grader.store.tables.roster_import import Admission


@dataclass(frozen=True, slots=True)
class RosterLine:
    """One person of a list; `line` is that of the file. The rest as `ListedAccount` has it."""

    line: int
    login: str
    name: str
    role: Role = Role.LEARNER
    email: str | None = None
    section: str | None = None
    external_id: str | None = None


@dataclass(frozen=True, slots=True)
class RosterImport:
    """A list as its course's staff sees it; see `grader.store.tables.roster_import`."""

    id: int
    admission: Admission
    num_lines: int
    num_done: int
    num_new: int
    num_invited: int
    num_enrolled: int
    num_changed: int
    problems: list[tuple[int, str]]
    created_at: datetime
    finished_at: datetime | None


@dataclass(frozen=True, slots=True)
class OpenLines:
    """The next lines of a list that is not taken over yet."""

    import_id: int
    course_id: int
    actor_id: int | None
    admission: Admission
    num_done: int
    lines: tuple[RosterLine, ...]

    def only(self, number: int) -> OpenLines:
        """One of them, once those before it are done."""
        return replace(self, num_done=self.num_done + number, lines=(self.lines[number],))


@dataclass(slots=True)
class _Outcome:
    num_new: int = 0
    num_invited: int = 0
    num_enrolled: int = 0
    num_changed: int = 0
    problems: list[tuple[int, str]] = field(default_factory=list)


def begin(
    store: Store, course_id: int, lines: Sequence[RosterLine], admission: Admission, *, actor_id: int
) -> int:
    """Keep a list to be taken over, and return its number."""
    with store.write() as connection:
        audit(
            connection,
            f"course:{course_id}",
            "roster_import_began",
            actor_id=actor_id,
            number=len(lines),
            admission=admission,
        )
        return connection.execute(
            insert(RosterImportRow)
            .values(
                course_id=course_id,
                actor_id=actor_id,
                admission=admission,
                lines=[asdict(one) for one in lines],
                num_lines=len(lines),
                problems=[],
                created_at=database_now(),
            )
            .returning(RosterImportRow.id)
        ).scalar_one()


def imports_of(store: Store, course_id: int, *, limit: int = 20) -> tuple[RosterImport, ...]:
    """A course's lists, the last first."""
    with store.read() as connection:
        rows = connection.execute(
            _FACTS.where(RosterImportRow.course_id == course_id)
            .order_by(RosterImportRow.id.desc())
            .limit(limit)
        )
        return tuple(RosterImport(*row) for row in rows)


def roster_import(store: Store, course_id: int, import_id: int) -> RosterImport | None:
    """One of them, or None."""
    with store.read() as connection:
        row = connection.execute(
            _FACTS.where(RosterImportRow.course_id == course_id, RosterImportRow.id == import_id)
        ).one_or_none()
    return None if row is None else RosterImport(*row)


def any_open(store: Store) -> bool:
    """Whether a list is not taken over yet."""
    with store.read() as connection:
        return connection.execute(_OPEN.limit(1)).first() is not None


def take_next(store: Store, most: int, seal: Seal) -> bool:
    """Take over the next lines, `most` at a time, of the oldest list; False: there is none.

    A line that the database refuses is left out and told; where others are at the same lines, they count once.
    """
    with store.read() as connection:
        row = connection.execute(_OPEN.limit(1)).one_or_none()
    if row is None:
        return False
    chosen = row.lines[row.num_done : row.num_done + most]
    lines = tuple(RosterLine(**{**one, "role": Role(one["role"])}) for one in chosen)
    _take(store, OpenLines(row.id, row.course_id, row.actor_id, row.admission, row.num_done, lines), seal)
    return True


def _take(store: Store, found: OpenLines, seal: Seal) -> None:
    try:
        # Twice: somebody else may make one of the accounts at this moment, and the next time it is there.
        for last in (False, True):
            try:
                return _take_lines(store, found, seal)
            except IntegrityError:
                if last:
                    raise
    except DBAPIError as error:
        if len(found.lines) > 1:
            for number in range(len(found.lines)):
                _take(store, found.only(number), seal)
        else:
            told = f"Was left out: the database refuses it ({type(error.orig).__name__})."
            with store.write() as connection:
                if _still_open(connection, found):
                    _note(connection, found, _Outcome(problems=[(found.lines[0].line, told)]))


def _take_lines(store: Store, found: OpenLines, seal: Seal) -> None:
    new_password = one_time_password if found.admission is Admission.PASSWORD else _no_password
    listed = [
        ListedAccount(one.login, one.name, new_password(), one.role, one.email, one.section, one.external_id)
        for one in found.lines
    ]
    # Before the transaction, so that nobody waits for it.
    hashes = hashes_of(listed)
    with store.write() as connection:
        if not _still_open(connection, found):
            return
        outcome = _Outcome()
        if found.admission is Admission.INVITATION:
            listed = _invite_newcomers(connection, found, listed, outcome)
        made = take_over_within(
            connection, found.course_id, listed, hashes, seal=seal, actor_id=found.actor_id
        )
        outcome.num_new = sum(one.new_account for one in made)
        outcome.num_enrolled = sum(one.enrolled and not one.new_account for one in made)
        outcome.num_changed = sum(one.changed for one in made)
        _note(connection, found, outcome)


def _no_password() -> None:
    return None


def _still_open(connection: Connection, found: OpenLines) -> bool:
    """Whether these lines are the next still; locks the list until the transaction ends."""
    row = connection.execute(
        select(RosterImportRow.num_done, RosterImportRow.finished_at)
        .where(RosterImportRow.id == found.import_id)
        .with_for_update()
    ).one_or_none()
    return row is not None and row.finished_at is None and row.num_done == found.num_done


def _invite_newcomers(
    connection: Connection, found: OpenLines, listed: Sequence[ListedAccount], outcome: _Outcome
) -> list[ListedAccount]:
    """Links for those who have no account; returns the others, who are enrolled as they are."""
    logins = [one.login for one in listed]
    there = set(connection.execute(select(PersonRow.login).where(PersonRow.login.in_(logins))).scalars())
    newcomers = [
        PersonalInvitation(one.login, one.name, one.role, one.email, one.section, one.external_id)
        for one in listed
        if one.login not in there
    ]
    outcome.num_invited = invite_each(connection, found.course_id, newcomers, actor_id=found.actor_id)
    return [one for one in listed if one.login in there]


def _note(connection: Connection, found: OpenLines, outcome: _Outcome) -> None:
    row = connection.execute(
        select(RosterImportRow.problems, RosterImportRow.num_lines).where(
            RosterImportRow.id == found.import_id
        )
    ).one()
    num_done = found.num_done + len(found.lines)
    over: dict[str, Any] = {}
    if num_done >= row.num_lines:
        # Names and addresses are kept where they belong by now, and nowhere else.
        over = {"finished_at": database_now(), "lines": []}
    connection.execute(
        update(RosterImportRow)
        .where(RosterImportRow.id == found.import_id)
        .values(
            num_done=num_done,
            num_new=RosterImportRow.num_new + outcome.num_new,
            num_invited=RosterImportRow.num_invited + outcome.num_invited,
            num_enrolled=RosterImportRow.num_enrolled + outcome.num_enrolled,
            num_changed=RosterImportRow.num_changed + outcome.num_changed,
            problems=[*row.problems, *outcome.problems],
            **over,
        )
    )


_OPEN = (
    select(
        RosterImportRow.id,
        RosterImportRow.course_id,
        RosterImportRow.actor_id,
        RosterImportRow.admission,
        RosterImportRow.num_done,
        RosterImportRow.lines,
    )
    .where(RosterImportRow.finished_at.is_(None))
    .order_by(RosterImportRow.id)
)
_FACTS = select(
    RosterImportRow.id,
    RosterImportRow.admission,
    RosterImportRow.num_lines,
    RosterImportRow.num_done,
    RosterImportRow.num_new,
    RosterImportRow.num_invited,
    RosterImportRow.num_enrolled,
    RosterImportRow.num_changed,
    RosterImportRow.problems,
    RosterImportRow.created_at,
    RosterImportRow.finished_at,
)
