"""Lists of people taken over line by line: by several at once, each line once, on both databases."""

from __future__ import annotations

import threading

from grader.store.courses import enrolments, roster_imports
from grader.store.courses.roster_imports import RosterLine
from grader.store.people import one_time_passwords
from grader.store.people.personal_invitations import personal_invitations
from grader.store.tables.roster_import import Admission
from tests.store.campus import Campus


def _lines(number: int) -> list[RosterLine]:
    return [RosterLine(n + 2, f"p{n}", f"Person {n}", section="A", external_id=f"{n}") for n in range(number)]


def _seal(password: str) -> str:
    return f"sealed {password}"


def test_of_several_who_take_lines_over_each_line_is_taken_once(campus: Campus) -> None:
    brought = [
        roster_imports.begin(campus.store, campus.course, _lines(60), admission, actor_id=campus.ines)
        for admission in (Admission.PASSWORD, Admission.PASSWORD)
    ]

    def work() -> None:
        while roster_imports.take_next(campus.store, 7, _seal):
            pass

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    first, second = (roster_imports.roster_import(campus.store, campus.course, one) for one in brought)
    assert first is not None
    assert second is not None
    assert (first.num_done, first.num_new, first.problems) == (60, 60, [])
    assert (second.num_done, second.num_new, second.num_changed) == (60, 0, 0)
    assert not roster_imports.any_open(campus.store)
    assert len(enrolments.participants(campus.store, campus.course)) == 63
    assert len(one_time_passwords.kept(campus.store, campus.course)) == 60


def test_who_has_no_account_is_invited_and_who_has_one_is_enrolled(campus: Campus) -> None:
    lines = [*_lines(3), RosterLine(9, "anna", "Anna", section="B")]
    brought = [
        roster_imports.begin(campus.store, campus.course, lines, Admission.INVITATION, actor_id=campus.ines)
        for _ in range(2)
    ]
    while roster_imports.take_next(campus.store, 2, _seal):
        pass
    again = roster_imports.roster_import(campus.store, campus.course, brought[1])
    assert again is not None
    assert (again.num_done, again.num_invited, again.num_changed) == (4, 0, 0)
    invited = personal_invitations(campus.store, campus.course)
    assert [(one.login, one.section, one.external_id) for one in invited] == [
        (f"p{n}", "A", f"{n}") for n in range(3)
    ]
    assert len({one.code for one in invited}) == 3
    there = {one.login: one.section for one in enrolments.participants(campus.store, campus.course)}
    assert there == {"anna": "B", "ben": None, "ines": None}
