"""A whole list of people at once: all or none, quickly, and lost one-time passwords are replaced in one go."""

from __future__ import annotations

import threading

import pytest

from grader.store.courses import class_list, enrolments
from grader.store.courses.class_list import ListedAccount
from grader.store.events import audit_of
from grader.store.people import one_time_passwords, people
from grader.store.people.one_time_passwords import NewPassword
from grader.store.tables.person import Role
from tests.store.campus import Campus

ONCE = "abcd-efgh-jkmn"


def listed(*logins: str) -> list[ListedAccount]:
    return [ListedAccount(login, login.title(), f"{ONCE}-{login}") for login in logins]


def test_who_is_new_gets_an_account_and_who_is_there_keeps_theirs(campus: Campus) -> None:
    otto = people.add_person(campus.store, "otto", "Otto O", password="correct horse battery")
    made = class_list.take_over(
        campus.store, campus.course, listed("mia", "otto", "anna", "ines"), actor_id=campus.ines
    )
    assert [(one.login, one.name, one.new_account, one.enrolled) for one in made] == [
        ("mia", "Mia", True, True),
        ("otto", "Otto O", False, True),
        ("anna", "Anna", False, False),
        ("ines", "Ines", False, False),
    ]
    mia = people.check_password(campus.store, "mia", f"{ONCE}-mia")
    assert mia is not None
    assert (mia.must_change, mia.role) == (True, Role.LEARNER)
    assert people.check_password(campus.store, "mia", ONCE) is None
    assert people.check_password(campus.store, "otto", "correct horse battery") is not None
    roles = {one.login: one.role for one in enrolments.participants(campus.store, campus.course)}
    assert (roles["otto"], roles["ines"]) == (Role.LEARNER, Role.INSTRUCTOR)
    told = [one.data.get("person_id") for one in audit_of(campus.store, f"course:{campus.course}")]
    assert told[:2] == [otto, mia.id]


def test_once_more_changes_nothing(campus: Campus) -> None:
    class_list.take_over(campus.store, campus.course, listed("mia", "leo"), actor_id=None)
    made = class_list.take_over(campus.store, campus.course, listed("mia", "leo"), actor_id=None)
    assert not any(one.new_account or one.enrolled for one in made)
    assert class_list.take_over(campus.store, campus.course, [], actor_id=None) == ()


def test_of_two_who_bring_the_same_list_each_person_is_made_once(campus: Campus) -> None:
    found: list[int] = []

    def bring() -> None:
        made = class_list.take_over(
            campus.store, campus.course, listed(*(f"p{n}" for n in range(40))), actor_id=None
        )
        found.append(sum(one.new_account for one in made))

    threads = [threading.Thread(target=bring) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sum(found) == 40
    assert len(enrolments.participants(campus.store, campus.course)) == 43


@pytest.mark.one_database
def test_a_one_time_password_is_hashed_slowly_after_the_first_sign_in(campus: Campus) -> None:
    class_list.take_over(campus.store, campus.course, listed("mia"), actor_id=None)
    for _ in range(2):
        assert people.check_password(campus.store, "mia", f"{ONCE}-mia") is not None


def test_lost_passwords_are_replaced_for_all_who_have_chosen_none(campus: Campus) -> None:
    class_list.take_over(campus.store, campus.course, listed("mia", "leo"), actor_id=None)
    mia, leo = (people.account_by_login(campus.store, login) for login in ("mia", "leo"))
    assert mia is not None
    assert leo is not None
    assert one_time_passwords.without_own_password(campus.store, campus.course) == (leo.id, mia.id)
    people.set_password(campus.store, leo.id, "leo's own words", must_change=False, actor_id=leo.id)
    assert one_time_passwords.without_own_password(campus.store, campus.course) == (mia.id,)
    new = {
        one.id: NewPassword(people.one_time_hash(f"new-one-for-{one.login}"), f"sealed-{one.login}")
        for one in (mia, leo)
    }
    given = one_time_passwords.reissue(campus.store, campus.course, new, actor_id=campus.ines)
    assert given == {mia.id: ("mia", "Mia")}
    assert people.check_password(campus.store, "mia", f"{ONCE}-mia") is None
    assert people.check_password(campus.store, "mia", "new-one-for-mia") is not None
    assert people.check_password(campus.store, "leo", "leo's own words") is not None
    assert [one.sealed for one in one_time_passwords.kept(campus.store, campus.course)] == ["sealed-mia"]
    people.signed_in(campus.store, mia.id)
    assert one_time_passwords.kept(campus.store, campus.course) == (), "it is used"


def test_a_list_says_roles_sections_and_ids(campus: Campus) -> None:
    """Of those who are there already it changes section and id, where it says something of them, and nothing else."""
    brought = [
        ListedAccount("tess", "Tess", f"{ONCE}-tess", Role.ASSISTANT, section="A"),
        ListedAccount("mia", "Mia", None, email="mia@uni.example", section="A", external_id="17"),
        ListedAccount("anna", "Another name", None, Role.INSTRUCTOR, "x@y.example", "B", "3"),
    ]
    made = class_list.take_over(
        campus.store, campus.course, brought, seal=lambda text: f"sealed {text}", actor_id=campus.ines
    )
    assert [(one.login, one.new_account, one.changed) for one in made] == [
        ("tess", True, False),
        ("mia", True, False),
        ("anna", False, True),
    ]
    there = {one.login: one for one in enrolments.participants(campus.store, campus.course)}
    assert (there["tess"].role, there["tess"].section) == (Role.ASSISTANT, "A")
    assert (there["mia"].section, there["mia"].external_id, there["mia"].email) == (
        "A",
        "17",
        "mia@uni.example",
    )
    assert (there["anna"].name, there["anna"].role, there["anna"].email) == ("Anna", Role.LEARNER, None)
    assert (there["anna"].section, there["anna"].external_id) == ("B", "3")
    (kept,) = one_time_passwords.kept(campus.store, campus.course)
    assert (kept.login, kept.section, kept.sealed) == ("tess", "A", f"sealed {ONCE}-tess")
    told = audit_of(campus.store, f"course:{campus.course}", kind="enrolment_changed")
    assert [one.data["section"] for one in told] == ["B"]

    class_list.take_over(campus.store, campus.course, [ListedAccount("anna", "Anna", None)], actor_id=None)
    again = {one.login: one for one in enrolments.participants(campus.store, campus.course)}
    assert again["anna"] == there["anna"]
