"""Extensions on pages: for some, for all, and as a list that is looked at first and comes out as it went in."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from sqlalchemy import update

from grader.store.courses import course_time_zone, courses
from grader.store.courses.courses import TaskTerms
from grader.store.courses.extensions import StoredExtension, extensions_of
from grader.store.tables import EnrolmentRow
from tests.web.conftest import TASKS, School

DUE = datetime(2026, 3, 27, 17, tzinfo=UTC)


def prepare(school: School) -> str:
    """A due date of 18:00 in Paris, two days before clocks change; the extensions' address."""
    course_time_zone.set_time_zone(school.store, school.course, "Europe/Paris", actor_id=None)
    there = courses.course_task(school.store, school.task)
    assert there is not None
    terms = TaskTerms(there.terms.title, there.terms.version, due_at=DUE, max_total=2)
    courses.set_task(school.store, school.course, TASKS[0], "cpu", terms)
    return f"/courses/{school.course}/extensions"


def given(school: School) -> dict[str, StoredExtension]:
    return {one.login: one for one in extensions_of(school.store, school.course)}


def test_some_get_more_and_the_others_do_not(school: School) -> None:
    page, ines = prepare(school), school.client("ines")
    anna, ben = school.people["anna"], school.people["ben"]
    sent = {"task": school.task, "person": [anna, ben], "extra_total": "3", "reason": "ill"}
    ines.post(page, data=sent)
    assert {login: one.given.extra_total for login, one in given(school).items()} == {"anna": 3, "ben": 3}
    ines.post(page, data={"task": school.task, "person": anna, "due_at": "2026-04-02T12:00"})
    assert given(school)["anna"].given.due_at == datetime(2026, 4, 2, 10, tzinfo=UTC)
    assert given(school)["anna"].given.extra_total == 3, "what she has stays"
    text = ines.get(page).text
    assert "+3 attempts" in text
    assert "ill" in text
    assert "5 of 5 left" in school.client("anna").get(f"/courses/{school.course}/tasks/{school.task}").text
    for wrong in ({}, {"due_at": "soon"}, {"extra_total": "-1"}, {"extra_total": "1", "person": "999"}):
        assert ines.post(page, data={"task": school.task, **wrong}).status_code == 422


def test_a_list_is_looked_at_given_and_comes_out_the_same(school: School) -> None:
    page, ines = prepare(school), school.client("ines")
    with school.store.write() as connection:
        connection.execute(
            update(EnrolmentRow)
            .where(EnrolmentRow.person_id == school.people["ben"])
            .values(external_id="S-0042")
        )
    text = (
        "External_ID;Login;Task;Days;Extra_attempts;Reason\n"
        f";anna;{TASKS[0]};+3;;ill\n"
        f"s-0042;;{TASKS[0]}/cpu;;2;=SUM(1)\n"
        f";nobody;{TASKS[0]};1;;\n"
        ";anna;no-such-task;1;;\n"
        f";anna;{TASKS[0]};soon;;\n"
        f";anna;{TASKS[0]};;;only a reason\n"
        f";anna;{TASKS[1]};2;;\n"
    )
    looked = ines.post(f"{page}/list", files={"file": ("list.csv", text.encode("utf-8-sig"))})
    assert looked.status_code == 200
    for said in (
        "Give 2 extensions",
        "5 lines cannot be used",
        "“nobody” takes no part in the course.",
        "no task “no-such-task”",
        "days is a whole number of days",
        "Gives neither time nor attempts.",
        "has no due date to count days from.",
    ):
        assert said in looked.text, said
    assert not given(school), "looking gives nothing"
    ines.post(f"{page}/list", data={"text": text, "action": "give"})
    # Three days later it is 18:00 on the clocks of Paris, whose hour has changed.
    assert given(school)["anna"].given.due_at == DUE + timedelta(days=3, hours=-1)
    assert (given(school)["ben"].given.extra_total, given(school)["ben"].given.reason) == (2, "=SUM(1)")
    before, file = given(school), ines.get(f"{page}.csv").content
    assert b"'=SUM" in file, "no spreadsheet takes it for a formula"
    for one in before.values():
        ines.post(f"{page}/retract", data={"task": one.course_task_id, "person": one.person_id})
    assert not given(school)
    ines.post(f"{page}/list", data={"text": file.decode("utf-8-sig"), "action": "give"})
    assert given(school) == before
    for empty in ("", "login,task\n", "a,b\n1,2\n"):
        assert ines.post(f"{page}/list", data={"text": empty, "action": "give"}).status_code == 422
    binary = ines.post(f"{page}/list", files={"file": ("list.xlsx", b"PK\x03\x04\0\0\0")})
    assert "Save the sheet as CSV" in binary.text
