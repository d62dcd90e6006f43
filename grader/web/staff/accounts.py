"""Accounts that an instructor looks after: whose they may change, and making many at once.

An instructor resets and erases only accounts that came to the site through courses of theirs and never had a part in
any other, nor were ever more than learners; otherwise one course's instructor could become somebody in another course,
or erase what somebody did there. Administrators look after everybody.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from grader.errors import UsageError
from grader.store.courses import class_list, enrolments
from grader.store.courses.class_list import ListedAccount
from grader.store.courses.enrolments import Participant
from grader.store.courses.roster_imports import RosterLine
from grader.store.database import Store
from grader.store.people import one_time_passwords, people
from grader.store.people.care import caring_courses
from grader.store.people.one_time_passwords import NewPassword
from grader.store.tables.person import Role
from grader.translation import gettext
from grader.web.role_names import role_name
from grader.web.security.access import Visitor
from grader.web.service import WebService


@dataclass(frozen=True, slots=True)
class PasswordHandout:
    """What somebody is given once: their login and one-time password; password None: they keep the one they have."""

    name: str
    login: str
    password: str | None
    section: str | None = None


@dataclass(frozen=True, slots=True)
class PlannedEnrolment:
    """One line of a list before it is taken over: whether the account is there, and what they are in the course now."""

    listed: RosterLine
    known: bool
    inside: Participant | None

    @property
    def what(self) -> str:
        """What would happen, in words."""
        if self.inside is None:
            if self.listed.role is Role.LEARNER:
                return gettext("enrol the account that is there") if self.known else gettext("new account")
            text = (
                gettext("enrol the account that is there, as {role}")
                if self.known
                else gettext("new account, as {role}")
            )
            return text.format(role=role_name(self.listed.role))
        changes = [
            text.format(old=old or gettext("none"), new=new)
            for text, old, new in (
                (gettext("section {old} → {new}"), self.inside.section, self.listed.section),
                (gettext("id {old} → {new}"), self.inside.external_id, self.listed.external_id),
            )
            if new is not None and new != old
        ]
        told = "; ".join(changes) if changes else gettext("takes part already")
        if self.inside.role is self.listed.role:
            return told
        return gettext("{changes}, stays {role}").format(changes=told, role=role_name(self.inside.role))


def may_manage(store: Store, visitor: Visitor, person_id: int) -> bool:
    """Whether this visitor may reset the password of that account, or erase it."""
    return person_id in managed(store, visitor, [person_id])


def managed(
    store: Store, visitor: Visitor, person_ids: Sequence[int], *, staff_too: bool = False
) -> set[int]:
    """Those of these accounts that this visitor may reset and erase; one's own never is among them.

    `staff_too`: also those that are more than a learner in courses of theirs alone.
    """
    others = [one for one in person_ids if one != visitor.account.id]
    if visitor.is_admin:
        return set(others)
    caring = caring_courses(store, others, staff_too=staff_too)
    return {one for one, courses in caring.items() if courses and all(map(visitor.teaches, courses))}


def plan(store: Store, course_id: int, listed: Sequence[RosterLine]) -> tuple[PlannedEnrolment, ...]:
    """What taking over a list would do."""
    inside = {one.login: one for one in enrolments.participants(store, course_id)}
    known = class_list.known_names(store, [one.login for one in listed])
    return tuple(PlannedEnrolment(one, one.login in known, inside.get(one.login)) for one in listed)


def add_one(service: WebService, course_id: int, one: RosterLine, *, actor_id: int) -> PasswordHandout:
    """Enrol somebody, with an account that is made if there is none; what to hand out."""
    password = people.one_time_password() if service.sign_on.local_passwords else None
    listed = ListedAccount(one.login, one.name, password, one.role, one.email, one.section, one.external_id)
    seal = service.one_time_passwords.seal
    (made,) = class_list.take_over(service.store, course_id, [listed], seal=seal, actor_id=actor_id)
    return PasswordHandout(made.name, made.login, password if made.new_account else None)


def reissue_passwords(
    service: WebService, visitor: Visitor, course_id: int, chosen: Sequence[int] | None = None
) -> tuple[PasswordHandout, ...]:
    """New one-time passwords for those of a course whom this visitor looks after; all their sessions and tokens end.

    `chosen`: for these, whatever password they have; None: for all learners who have not chosen one.
    """
    store = service.store
    waiting = one_time_passwords.without_own_password(store, course_id) if chosen is None else chosen
    allowed = managed(store, visitor, waiting)
    theirs = [one for one in waiting if one in allowed]
    passwords = {person_id: people.one_time_password() for person_id in theirs}
    new = {
        person_id: NewPassword(people.one_time_hash(password), service.one_time_passwords.seal(password))
        for person_id, password in passwords.items()
    }
    given = one_time_passwords.reissue(
        store, course_id, new, chosen_too=chosen is not None, actor_id=visitor.account.id
    )
    return tuple(
        PasswordHandout(given[one][1], given[one][0], passwords[one]) for one in theirs if one in given
    )


def kept_passwords(service: WebService, visitor: Visitor, course_id: int) -> tuple[PasswordHandout, ...]:
    """One-time passwords that nobody has used yet, of those whom this visitor looks after.

    Those that another key of the service sealed are not among them; `reissue_passwords` gives new ones.
    """
    found = one_time_passwords.kept(service.store, course_id)
    # Of assistants, too: what opens their account was made for this course, and nobody has used it.
    allowed = managed(service.store, visitor, [one.person_id for one in found], staff_too=True)
    opened = ((one, service.one_time_passwords.open(one.sealed)) for one in found if one.person_id in allowed)
    return tuple(
        PasswordHandout(one.name, one.login, password, one.section)
        for one, password in opened
        if password is not None
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
