"""What costs somebody something is asked first, on a page without any script; the cost is told before it is paid."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from typing import Any

from grader.model.grade import Verdict
from grader.store.attempts.attempts import AttemptFilter, attempt, attempts
from grader.store.courses import courses, enrolments
from grader.store.people import people
from grader.store.queue import claims
from grader.store.tables.attempt import AttemptState
from grader.store.tables.person import Role
from tests.store.campus import verdict_of
from tests.web.conftest import Browser, School


def yes(browser: Browser, page: Any) -> Any:
    """Press the button of a page that asks."""
    assert page.status_code == 200, page.text
    (form,) = re.findall(r'<main.*?<form method="post" action="([^"]+)">(.*?)</form>', page.text, re.DOTALL)
    fields: dict[str, list[str]] = {}
    for name, value in re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)">', form[1]):
        fields.setdefault(name, []).append(html.unescape(value))
    return browser.post(form[0], data=fields)


def limit(school: School, **terms: Any) -> None:
    task = courses.course_task(school.store, school.task)
    assert task is not None
    courses.set_task(school.store, school.course, task.task, task.profile, replace(task.terms, **terms))


def state(school: School, number: int) -> AttemptState:
    found = attempt(school.store, number)
    assert found is not None
    return found.state


def test_cancelling_what_waits_asks_nothing_and_says_that_it_costs_nothing(school: School) -> None:
    waiting, anna = school.hand_in("anna"), school.client("anna")
    assert "cancelling costs no attempt" in anna.get(f"/attempts/{waiting}").text
    assert anna.post(f"/attempts/{waiting}/cancel").status_code == 303
    assert state(school, waiting) is AttemptState.CANCELLED


def test_cancelling_what_runs_asks_first_and_names_the_price(school: School) -> None:
    limit(school, max_per_day=3)
    running, anna = school.hand_in("anna"), school.client("anna")
    claims.claim(school.store, "w1", ("cpu",))
    asked = anna.post(f"/attempts/{running}/cancel")
    assert "counts as one of your attempts" in asked.text
    assert "2 of 3 left today" in asked.text
    found = attempt(school.store, running)
    assert found is not None
    assert found.cancel_requested_at is None, "nothing was done yet"
    assert yes(anna, asked).status_code == 303
    found = attempt(school.store, running)
    assert found is not None
    assert found.cancel_requested_at is not None


def test_what_is_left_is_told_beside_the_button(school: School) -> None:
    page, anna = f"/courses/{school.course}/tasks/{school.task}", school.client("anna")
    told = anna.get(page).text
    assert 'id="left"' not in told
    assert "as many as you like" in told
    limit(school, max_per_day=3)
    school.judge("anna")
    told = anna.get(page).text
    assert '<span class="muted" id="left">2 of 3 left today</span>' in told
    assert "as many as you like" not in told
    limit(school, max_per_day=3, max_total=2)
    assert "1 of 2 left in all" in anna.get(page).text, "the narrower one"


def test_judging_all_again_says_how_many_and_asks(school: School) -> None:
    for login in ("anna", "ben"):
        school.judge(login, grade=verdict_of(Verdict.REJECTED, 40.0))
    ines, before = school.client("ines"), len(attempts(school.store, AttemptFilter()))
    asked = ines.post(f"/courses/{school.course}/regrades", data={"which": "matching", "verdict": "rejected"})
    assert "Judge 2 attempts again?" in asked.text
    assert len(attempts(school.store, AttemptFilter())) == before
    assert "/regrades/" in yes(ines, asked).headers["location"]
    assert len(attempts(school.store, AttemptFilter())) == before + 2


def test_judging_what_another_version_judged_asks_too(school: School) -> None:
    for login in ("anna", "ben"):
        school.judge(login)
    limit(school, version="f" * 64)
    ines = school.client("ines")
    asked = ines.post(f"/courses/{school.course}/settings/{school.task}/regrade")
    assert "Judge 2 attempts again?" in asked.text
    assert "/regrades/" in yes(ines, asked).headers["location"]


def test_a_course_is_not_closed_by_one_click(school: School) -> None:
    ines, place = school.client("ines"), f"/courses/{school.course}/settings/door"

    def closed() -> bool:
        found = courses.course(school.store, school.course)
        assert found is not None
        return found.closed

    assert "Close it…" in ines.get(f"/courses/{school.course}/settings").text
    asked = ines.post(place, data={"closed": "yes"})
    assert "Nobody can hand in anything more" in asked.text
    assert not closed()
    assert yes(ines, asked).status_code == 303
    assert closed()
    assert ines.post(place, data={"closed": ""}).status_code == 303
    assert not closed(), "opening it again is asked by nobody"


def test_nobody_becomes_an_instructor_by_one_click(school: School) -> None:
    ines, anna = school.client("ines"), school.people["anna"]

    def role() -> Role:
        return next(
            one.role for one in enrolments.participants(school.store, school.course) if one.person_id == anna
        )

    asked = ines.post(f"/courses/{school.course}/people/{anna}/role", data={"role": "instructor"})
    assert "Make Anna an instructor?" in asked.text
    assert role() is Role.LEARNER
    assert yes(ines, asked).status_code == 303
    assert role() is Role.INSTRUCTOR
    ines.post(f"/courses/{school.course}/people/{anna}/role", data={"role": "learner"})
    assert role() is Role.LEARNER, "giving it up is asked by nobody"


def test_nobody_becomes_an_administrator_by_one_click(school: School) -> None:
    ada, ben = school.client("ada"), school.people["ben"]
    asked = ada.post(f"/admin/people/{ben}/role", data={"role": "admin"})
    found = people.account(school.store, ben)
    assert found is not None
    assert found.role is Role.LEARNER
    assert yes(ada, asked).status_code == 303
    found = people.account(school.store, ben)
    assert found is not None
    assert found.role is Role.ADMIN
