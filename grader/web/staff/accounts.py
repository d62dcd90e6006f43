"""Accounts that an instructor looks after: whose they may change, and making many at once.

An instructor resets and erases only accounts that are nothing but learners, and only in courses of theirs; otherwise
one course's instructor could become somebody in another course. Administrators look after everybody.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from grader.errors import UsageError
from grader.store import enrolments, people
from grader.store.database import Store
from grader.store.people import Account
from grader.store.tables.person import Role
from grader.web.security.access import Visitor
from grader.web.staff.roster import ListedPerson

# Hashing a password takes memory and time on purpose; a few at once fill the cores.
_AT_ONCE = 4
MOST_NEW = 500


@dataclass(frozen=True, slots=True)
class PasswordHandout:
    """What somebody is given once: their login and one-time password; password None: they keep the one they have."""

    name: str
    login: str
    password: str | None


@dataclass(frozen=True, slots=True)
class PlannedEnrolment:
    """One line of a list before it is taken over: `account` is the one there is already, or None."""

    listed: ListedPerson
    account: Account | None
    inside: bool

    @property
    def what(self) -> str:
        """What would happen, in words."""
        if self.inside:
            return "takes part already"
        return "new account" if self.account is None else "enrol the account that is there"


def may_manage(store: Store, visitor: Visitor, person_id: int) -> bool:
    """Whether this visitor may reset the password of that account, or erase it."""
    found = people.account(store, person_id)
    if found is None or found.id == visitor.account.id:
        return False
    if visitor.is_admin:
        return True
    own = enrolments.courses_of(store, person_id)
    only_learns = found.role is Role.LEARNER and all(one.role is Role.LEARNER for one in own)
    return only_learns and bool(own) and all(visitor.teaches(one.course_id) for one in own)


def plan(store: Store, course_id: int, listed: Sequence[ListedPerson]) -> tuple[PlannedEnrolment, ...]:
    """What taking over a list would do."""
    inside = {one.person_id for one in enrolments.participants(store, course_id)}
    planned = []
    for one in listed:
        found = people.account_by_login(store, one.login)
        planned.append(PlannedEnrolment(one, found, found is not None and found.id in inside))
    return tuple(planned)


def enrol_planned(
    store: Store, course_id: int, planned: Sequence[PlannedEnrolment], *, actor_id: int
) -> tuple[PasswordHandout, ...]:
    """Make the accounts that are missing and enrol everybody who is not in the course; returns what to hand out.

    Raises:
        UsageError: more than `MOST_NEW` accounts would be new.
    """
    if sum(one.account is None for one in planned) > MOST_NEW:
        raise UsageError(f"at most {MOST_NEW} new accounts at once; split the list")

    def one_of(one: PlannedEnrolment) -> PasswordHandout | None:
        if one.inside:
            return None
        password = None if one.account is not None else people.one_time_password()
        person_id = one.account.id if one.account is not None else 0
        if password is not None:
            try:
                person_id = people.add_person(
                    store,
                    one.listed.login,
                    one.listed.name,
                    password=password,
                    must_change=True,
                    actor_id=actor_id,
                )
            except UsageError:
                # Somebody else made that account just now: it keeps its password.
                found = people.account_by_login(store, one.listed.login)
                if found is None:
                    raise
                person_id, password = found.id, None
        enrolments.enrol(store, course_id, person_id, actor_id=actor_id)
        name = one.listed.name if one.account is None else one.account.name
        return PasswordHandout(name, one.listed.login, password)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return tuple(handout for handout in pool.map(one_of, planned) if handout is not None)


def reset_password(store: Store, person_id: int, *, actor_id: int) -> PasswordHandout:
    """A new one-time password for an account; all its sessions end.

    Raises:
        UsageError: there is no such account.
    """
    password = people.one_time_password()
    people.set_password(store, person_id, password, must_change=True, actor_id=actor_id)
    found = people.account(store, person_id)
    if found is None:
        raise UsageError("there is no such account any more")
    return PasswordHandout(found.name, found.login, password)
