"""A course's tabs: each leads to a page that marks it, and that has the same row; a learner has none of them."""

from __future__ import annotations

import re

from grader.store.courses.grading_rules import GradingRules, set_grading_rules
from grader.store.tables.person import Role
from tests.web.conftest import School

_ROW = re.compile(r'<nav class="tabs[^"]*" aria-label="([^"]+)">(.*?)</nav>', re.DOTALL)
_TAB = re.compile(r'<a href="(/[^"]+)"([^>]*)>([^<]+)</a>')


def rows(page: str) -> dict[str, dict[str, str]]:
    """Rows of tabs by what they are called: address → aria-current."""
    return {
        name: {
            url: "".join(re.findall('aria-current="([a-z]+)"', rest)) for url, rest, _ in _TAB.findall(row)
        }
        for name, row in _ROW.findall(page)
    }


def _opens_and_marks_each(school: School, login: str) -> int:
    """Follow each tab, and the tabs of its part; how many pages that were."""
    client, at = school.client(login), f"/courses/{school.course}"
    main, seen = set(rows(client.get(at).text)["Course"]), 0
    for part in main:
        found = rows(client.get(part).text)
        second = next((row for name, row in found.items() if name != "Course"), {part: "page"})
        for url in second:
            answer = client.get(url)
            assert answer.status_code == 200, url
            shown = rows(answer.text)
            assert set(shown["Course"]) == main, url
            assert [one for one, mark in shown["Course"].items() if mark] == [part], url
            if second != {part: "page"}:
                (here,) = (row for name, row in shown.items() if set(row) == set(second))
                assert [one for one, mark in here.items() if mark == "page"] == [url]
            seen += 1
    return seen


def test_each_tab_of_an_instructor_opens_a_page_that_marks_it(school: School) -> None:
    assert _opens_and_marks_each(school, "ines") > 20


def test_assistants_and_observers_see_the_tabs_that_open_for_them(school: School) -> None:
    school.join("tess", Role.ASSISTANT)
    school.join("otis", Role.OBSERVER)
    assert _opens_and_marks_each(school, "tess") == _opens_and_marks_each(school, "otis") == 8


def test_what_lies_below_a_page_is_marked_as_of_it(school: School) -> None:
    at, ines = f"/courses/{school.course}", school.client("ines")
    found = rows(ines.get(f"{at}/settings/{school.task}").text)
    assert found["Course"][f"{at}/settings"] == "true"
    assert found["Settings"][f"{at}/settings"] == "true"
    assert found["Settings"][f"{at}/grading"] == ""


def test_a_learner_has_no_tabs_of_the_staff(school: School) -> None:
    at = f"/courses/{school.course}"
    for place in ("", "/announcements"):
        assert rows(school.client("anna").get(at + place).text) == {}


def test_a_forum_stands_beside_them_as_soon_as_it_is_set_and_as_long(school: School) -> None:
    ines, at = school.client("ines"), f"/courses/{school.course}/gradebook"
    for forum in (None, "https://forum.example/ddp", None):
        rules = GradingRules(forum_url=forum)
        set_grading_rules(school.store, school.course, rules, actor_id=school.people["ines"])
        assert ("https://forum.example/ddp" in ines.get(at).text) is (forum is not None)
