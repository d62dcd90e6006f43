"""Identities, accounts and roles by groups hold on both databases, also where two come at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from grader.store.courses import enrolments
from grader.store.database import Store
from grader.store.files import DatabaseFiles
from grader.store.people import erasure, identities, one_time_passwords, own_courses, people, sign_ons
from grader.store.people.group_roles import CourseRole, GroupRoles
from grader.store.people.identities import LinkResult, UnlinkResult, VouchedIdentity, WaysIn
from grader.store.people.mailboxes import set_address
from grader.store.people.sign_ons import SignedOn, SignOnRefusal, SignOnTerms
from grader.store.tables.person import Role
from tests.store.campus import Campus
from tests.store.test_schema import rows

UNI, LAB = "https://login.uni.example", "https://login.lab.example"
OPEN = SignOnTerms(link_by_address=True, open_accounts=True)
WAYS = WaysIn(frozenset((UNI, LAB)), password=True)


def identity(subject: str = "s-1", issuer: str = UNI, login: str = "eve") -> VouchedIdentity:
    return VouchedIdentity(issuer, subject, "Eve", login)


def signed_on(store: Store, who: VouchedIdentity, roles: GroupRoles | None = None) -> int:
    found = sign_ons.sign_on(store, who, OPEN, roles)
    assert isinstance(found, SignedOn), found
    return found.person_id


def role_of(store: Store, person: int) -> Role:
    found = people.account(store, person)
    assert found is not None
    return found.role


def test_many_at_once_are_one_person_and_others_have_logins_of_their_own(store: Store) -> None:
    with ThreadPoolExecutor(8) as pool:
        same = set(pool.map(lambda _: signed_on(store, identity()), range(8)))
    assert len(same) == 1
    with ThreadPoolExecutor(4) as pool:
        others = list(pool.map(lambda n: signed_on(store, identity(f"other-{n}")), range(4)))
    logins = {account.login for account in people.accounts(store)}
    assert len(set(others)) == 4
    assert logins == {"eve", "eve2", "eve3", "eve4", "eve5"}


@pytest.mark.one_database
@pytest.mark.parametrize("login", ["", "@uni.example", "ß", "--", "名前", "x" * 300, "a b\0c"])
def test_whatever_they_are_called_there_their_login_is_one_that_can_be_typed(
    store: Store, login: str
) -> None:
    account = people.account(store, signed_on(store, identity(login=login)))
    assert account is not None
    assert account.login.isascii()
    assert 2 <= len(account.login) <= 64


def test_an_identity_opens_one_account_and_the_last_way_in_stays(store: Store) -> None:
    campus = Campus(store)
    assert identities.link(store, campus.anna, identity()) is LinkResult.LINKED
    assert identities.link(store, campus.anna, identity()) is LinkResult.ALREADY
    assert identities.link(store, campus.ben, identity()) is LinkResult.ANOTHERS
    assert identities.link(store, campus.anna, identity("s-2", LAB)) is LinkResult.LINKED
    assert signed_on(store, identity("s-2", LAB)) == campus.anna
    first, second = identities.sign_on_of(store, campus.anna).identities
    assert identities.unlink(store, campus.ben, first.id, WAYS) is UnlinkResult.NONE
    with ThreadPoolExecutor(2) as pool:
        done = list(
            pool.map(lambda one: identities.unlink(store, campus.anna, one.id, WAYS), (first, second))
        )
    assert sorted(done) == [UnlinkResult.LAST, UnlinkResult.REMOVED]


@pytest.mark.parametrize("linked", [True, False])
def test_a_one_time_password_that_is_kept_is_forgotten_by_a_sign_on(store: Store, linked: bool) -> None:
    campus = Campus(store)
    person = people.add_person(store, "eve", "Eve", password=people.one_time_password(), must_change=True)
    set_address(store, person, "eve@uni.example", actor_id=None)
    enrolments.enrol(store, campus.course, person)
    with store.write() as connection:
        one_time_passwords.keep(connection, campus.course, {person: "sealed"})
    who = replace(identity(), address="eve@uni.example")
    if linked:
        identities.link(store, person, who)
    assert signed_on(store, who) == person
    assert not rows(store)["one_time_passwords"]


def test_who_is_erased_is_nobody_to_their_provider_either(store: Store) -> None:
    person = signed_on(store, identity(), GroupRoles(site=Role.INSTRUCTOR))
    files = DatabaseFiles(store)
    erasure.erase(store, files, person, actor_id=None)
    there = rows(store)
    assert not there["identities"]
    assert not there["group_roles"]
    closed = SignOnTerms()
    assert sign_ons.sign_on(store, identity(), closed) is SignOnRefusal.NO_ACCOUNT


def test_two_providers_groups_give_and_take_each_their_own(store: Store) -> None:
    campus = Campus(store)
    at_uni, at_lab = identity("s-1", UNI), identity("s-1", LAB)
    person = signed_on(store, at_uni)
    identities.link(store, person, at_lab)
    course = CourseRole("ddp", Role.INSTRUCTOR)
    signed_on(store, at_uni, GroupRoles(site=Role.INSTRUCTOR, courses=(course,)))
    signed_on(store, at_lab, GroupRoles(site=Role.ADMIN, courses=(CourseRole("ddp", Role.LEARNER),)))
    assert role_of(store, person) is Role.ADMIN
    signed_on(store, at_lab, GroupRoles())
    assert role_of(store, person) is Role.INSTRUCTOR
    assert [one.role for one in own_courses.courses_of(store, person)] == [Role.INSTRUCTOR]
    (kept, _) = identities.sign_on_of(store, person).identities
    assert identities.unlink(store, person, kept.id, WAYS) is UnlinkResult.REMOVED
    assert role_of(store, person) is Role.LEARNER
    assert own_courses.courses_of(store, person) == ()
    assert campus.course


def test_staff_who_changes_a_role_afterwards_is_not_overruled_by_taking_it(store: Store) -> None:
    person = signed_on(store, identity(), GroupRoles(site=Role.INSTRUCTOR))
    people.set_role(store, person, Role.ADMIN, actor_id=None)
    signed_on(store, identity(), GroupRoles())
    assert role_of(store, person) is Role.ADMIN
    signed_on(store, identity(), None)
    assert role_of(store, person) is Role.ADMIN
