"""Accounts that an instructor looks after: whose they may change, and making many at once.

An instructor resets and erases only accounts that came to the site through courses of theirs and never had a part in
any other, nor were ever more than learners; otherwise one course's instructor could become somebody in another course,
or erase what somebody did there. Administrators look after everybody.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from grader.errors import UsageError
from grader.store import class_list, enrolments, people
from grader.store.care import caring_courses
from grader.store.class_list import ListedAccount
from grader.store.database import Store
from grader.web.security.access import Visitor
from grader.web.staff.roster import ListedPerson

MOST_NEW = 500


@dataclass(frozen=True, slots=True)
class PasswordHandout:
    """What somebody is given once: their login and one-time password; password None: they keep the one they have."""

    name: str
    login: str
    password: str | None


@dataclass(frozen=True, slots=True)
class PlannedEnrolment:
    """One line of a list before it is taken over: whether the account is there, and takes part already."""

    listed: ListedPerson
    known: bool
    inside: bool

    @property
    def what(self) -> str:
        """What would happen, in words."""
        if self.inside:
            return "takes part already"
        return "new account" if not self.known else "enrol the account that is there"


def may_manage(store: Store, visitor: Visitor, person_id: int) -> bool:
    """Whether this visitor may reset the password of that account, or erase it."""
    return person_id in managed(store, visitor, [person_id])


def managed(store: Store, visitor: Visitor, person_ids: Sequence[int]) -> set[int]:
    """Those of these accounts that this visitor may reset and erase; one's own never is among them."""
    others = [one for one in person_ids if one != visitor.account.id]
    if visitor.is_admin:
        return set(others)
    caring = caring_courses(store, others)
    return {one for one, courses in caring.items() if courses and all(map(visitor.teaches, courses))}


def plan(store: Store, course_id: int, listed: Sequence[ListedPerson]) -> tuple[PlannedEnrolment, ...]:
    """What taking over a list would do."""
    inside = {one.login for one in enrolments.participants(store, course_id)}
    known = class_list.known_names(store, [one.login for one in listed])
    return tuple(PlannedEnrolment(one, one.login in known, one.login in inside) for one in listed)


def enrol_planned(
    store: Store, course_id: int, planned: Sequence[PlannedEnrolment], *, actor_id: int
) -> tuple[PasswordHandout, ...]:
    """Make the accounts that are missing and enrol everybody who is not in the course; returns what to hand out.

    Raises:
        UsageError: more than `MOST_NEW` accounts would be new.
    """
    if sum(not one.known for one in planned) > MOST_NEW:
        raise UsageError(f"at most {MOST_NEW} new accounts at once; split the list")
    passwords = {one.listed.login: people.one_time_password() for one in planned}
    listed = [
        ListedAccount(one.listed.login, one.listed.name, passwords[one.listed.login]) for one in planned
    ]
    return tuple(
        PasswordHandout(one.name, one.login, passwords[one.login] if one.new_account else None)
        for one in class_list.take_over(store, course_id, listed, actor_id=actor_id)
        if one.enrolled
    )


def reissue_passwords(store: Store, visitor: Visitor, course_id: int) -> tuple[PasswordHandout, ...]:
    """New one-time passwords for all learners of a course who have not chosen one and whom this visitor looks after."""
    waiting = class_list.without_own_password(store, course_id)
    allowed = managed(store, visitor, waiting)
    theirs = [one for one in waiting if one in allowed]
    passwords = {person_id: people.one_time_password() for person_id in theirs}
    given = class_list.reissue(store, passwords, actor_id=visitor.account.id)
    return tuple(
        PasswordHandout(given[one][1], given[one][0], passwords[one]) for one in theirs if one in given
    )


def reset_password(store: Store, person_id: int, *, actor_id: int) -> PasswordHandout:
    """A new one-time password for an account; all its sessions and tokens end.

    Raises:
        UsageError: there is no such account.
    """
    password = people.one_time_password()
    people.set_password(store, person_id, password, must_change=True, actor_id=actor_id)
    found = people.account(store, person_id)
    if found is None:
        raise UsageError("there is no such account any more")
    return PasswordHandout(found.name, found.login, password)
