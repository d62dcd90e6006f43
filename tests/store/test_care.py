"""Who looks after an account: it follows from everything that somebody ever took part in."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from grader.store import schema
from grader.store.courses import class_list, courses, enrolments
from grader.store.courses.class_list import ListedAccount
from grader.store.people import invitations, people
from grader.store.people.care import caring_courses
from grader.store.tables.person import Role
from tests.store.campus import Campus
from tests.store.conftest import Databases

PASSWORD = "abcd-efgh-jkmn"


@pytest.fixture
def other(campus: Campus) -> int:
    """Another course, which `otto` teaches."""
    course = courses.add_course(campus.store, "other", "Another course")
    otto = people.add_person(campus.store, "otto", "Otto", Role.INSTRUCTOR)
    enrolments.enrol(campus.store, course, otto, Role.INSTRUCTOR)
    return course


def _care(campus: Campus, person_id: int) -> set[int]:
    return set(caring_courses(campus.store, [person_id])[person_id])


def _listed(campus: Campus, course: int, login: str, by: str) -> int:
    """That instructor puts that login on the list of that course."""
    actor = people.account_by_login(campus.store, by)
    assert actor is not None
    listed = [ListedAccount(login, login.title(), PASSWORD)]
    class_list.take_over(campus.store, course, listed, actor_id=actor.id)
    found = people.account_by_login(campus.store, login)
    assert found is not None
    return found.id


def test_a_former_learner_stays_in_the_care_of_their_course(campus: Campus, other: int) -> None:
    eve = _listed(campus, campus.course, "eve", "ines")
    assert _care(campus, eve) == {campus.course}
    enrolments.leave(campus.store, campus.course, eve, actor_id=campus.ines)
    assert _care(campus, eve) == {campus.course}
    assert _listed(campus, other, "eve", "otto") == eve
    assert _care(campus, eve) == {campus.course, other}, "nobody teaches both"
    enrolments.leave(campus.store, other, eve, actor_id=None)
    assert _care(campus, eve) == {campus.course, other}, (
        "what she has in the other course is not her first one's"
    )


def test_knowing_a_login_is_no_care(campus: Campus, other: int) -> None:
    """An account that administrators made, and somebody enrols: it may be a colleague's of tomorrow."""
    ida = people.add_person(campus.store, "ida", "Ida")
    assert _care(campus, ida) == set()
    _listed(campus, other, "ida", "otto")
    assert _care(campus, ida) == set()
    ada = people.add_person(campus.store, "ada", "Ada", Role.ADMIN)
    enrolments.enrol(campus.store, other, ida, actor_id=ada)
    assert _care(campus, ida) == set(), "she was in already, nothing happened"
    enrolments.leave(campus.store, other, ida, actor_id=ada)
    _listed(campus, other, "ida", "ada")
    assert _care(campus, ida) == {other}, "now an administrator put her there"


def test_who_comes_by_themselves_is_in_the_courses_care(campus: Campus) -> None:
    eve = people.add_person(campus.store, "eve", "Eve")
    code = invitations.invite(campus.store, campus.course, actor_id=campus.ines)
    invitations.redeem(campus.store, code, eve)
    assert _care(campus, eve) == {campus.course}


def test_whoever_is_or_was_staff_is_an_administrators(campus: Campus) -> None:
    assert _care(campus, campus.ines) == set()
    assert _care(campus, campus.anna) == {campus.course}
    enrolments.enrol(campus.store, campus.course, campus.anna, Role.INSTRUCTOR, actor_id=campus.ines)
    enrolments.enrol(campus.store, campus.course, campus.anna, Role.LEARNER, actor_id=campus.ines)
    assert _care(campus, campus.anna) == set()
    people.set_role(campus.store, campus.ben, Role.ADMIN, actor_id=None)
    assert _care(campus, campus.ben) == set()
    assert caring_courses(campus.store, []) == {}


def test_an_upgraded_database_knows_who_was_where(databases: Databases) -> None:
    """From enrolments, from what was handed in, and from the log, in a database of the version before."""
    store = databases.open(empty=True)
    schema.upgrade(store)
    campus = Campus(store)
    second, third = (courses.add_course(store, name, name) for name in ("second", "third"))
    campus.queue(campus.anna)
    for course in (campus.course, second):
        enrolments.leave(store, course, campus.anna, actor_id=None)
    enrolments.enrol(store, third, campus.anna)
    enrolments.enrol(store, second, campus.ben, Role.INSTRUCTOR)
    enrolments.leave(store, second, campus.ben, actor_id=None)
    eve = campus.person("eve")
    schema.downgrade(store, "0007")
    with store.write() as connection:
        # The log of enrolments may have been cleared; what she handed in is there.
        connection.execute(
            text("DELETE FROM events WHERE kind = 'enrolled' AND data LIKE :one"),
            {"one": f'%"person_id":{campus.anna},%'},
        )
    schema.upgrade(store)
    found = caring_courses(store, [campus.anna, campus.ben, campus.ines, eve])
    assert found == {
        campus.anna: {campus.course, third},
        campus.ben: frozenset(),
        campus.ines: frozenset(),
        eve: {campus.course},
    }
