"""The gradebook's table is made once for all who are shown the same, and nobody gets what was made for others."""

from __future__ import annotations

import threading

import pytest

from grader.store.courses import enrolments
from grader.store.courses.enrolment_details import set_section
from grader.store.grading.gradebook import Gradebook
from grader.store.tables.person import Role
from grader.translation import gettext, in_language
from grader.web.staff import rendered_gradebook
from grader.web.staff.gradebook_query import GradebookQuery
from grader.web.staff.gradebook_table import GradebookPage, gradebook_page
from tests.web.conftest import School

READERS = ("ines", "ada", "otis")
"""All of them are shown everybody."""


@pytest.fixture
def made(school: School, monkeypatch: pytest.MonkeyPatch) -> list[GradebookQuery]:
    """What pages were made of; anna is in section A, with the assistant `tess`, and ben in B; `otis` looks on."""
    for login, section in (("anna", "A"), ("ben", "B")):
        set_section(school.store, school.course, [school.people[login]], section, actor_id=None)
    school.join("tess", Role.ASSISTANT, section="A")
    school.join("otis", Role.OBSERVER)
    school.judge("anna")
    school.judge("ben")
    pages: list[GradebookQuery] = []

    def page(book: Gradebook, wanted: GradebookQuery) -> GradebookPage:
        pages.append(wanted)
        return gradebook_page(book, wanted)

    monkeypatch.setattr(rendered_gradebook, "gradebook_page", page)
    return pages


def whole(school: School, login: str, query: str = "", language: str = "en") -> str:
    answer = school.client(login).get(
        f"/courses/{school.course}/gradebook{query}", headers={"Accept-Language": language}
    )
    assert answer.status_code == 200, answer.text
    return answer.text


def table(page: str) -> str:
    return page[page.index('<table class="book">') : page.index("</table>")]


def test_readers_of_equal_rights_share_a_table_and_nothing_else(
    school: School, made: list[GradebookQuery]
) -> None:
    pages = {login: whole(school, login) for login in READERS}
    assert len({table(page) for page in pages.values()}) == 1
    assert len(made) == 1, "it is made once"
    assert len({page.split('name="csrf" value="')[1].split('"')[0] for page in pages.values()}) == len(
        READERS
    )
    for login, page in pages.items():
        others = {one.title() for one in READERS} - {login.title()}
        assert not any(f">{one}</a>" in page for one in others)


def test_many_at_once_cost_one(school: School, made: list[GradebookQuery]) -> None:
    clients, found = [school.client("ines") for _ in range(8)], list[str]()
    at = f"/courses/{school.course}/gradebook"
    readers = [threading.Thread(target=lambda one=one: found.append(one.get(at).text)) for one in clients]
    for one in readers:
        one.start()
    for one in readers:
        one.join(60)
    assert len({table(page) for page in found}) == 1
    assert len(found) == 8
    assert len(made) == 1


def test_who_is_shown_a_section_never_gets_the_table_of_the_class(
    school: School, made: list[GradebookQuery]
) -> None:
    for _ in range(2):
        assert {"anna", "ben"} <= logins(whole(school, "ines"))
        assert logins(whole(school, "tess")) == {"anna"}
    enrolments.leave(school.store, school.course, school.people["tess"], actor_id=None)
    school.join("tess", Role.ASSISTANT, section="B")
    assert logins(whole(school, "tess")) == {"ben"}
    assert school.client("otto").get(f"/courses/{school.course}/gradebook").status_code == 404
    assert school.client("anna").get(f"/courses/{school.course}/gradebook").status_code == 404


def test_every_language_order_and_part_is_a_table_of_its_own(
    school: School, made: list[GradebookQuery]
) -> None:
    english = whole(school, "ines")
    with in_language("de"):
        told = gettext("not handed in")
    assert told in table(whole(school, "ines", language="de"))
    assert told not in table(whole(school, "ada"))
    assert logins(whole(school, "ines", "?q=ann")) == {"anna"}
    assert table(whole(school, "ines", "?sort=login&order=down")) != table(english)
    assert table(whole(school, "ines")) == table(english)
    assert len(made) == 4


def test_what_happens_is_on_the_next_page(school: School, made: list[GradebookQuery]) -> None:
    before = table(whole(school, "ines"))
    attempt = school.judge("robot")
    after = table(whole(school, "ines"))
    assert f"/attempts/{attempt}" in after
    assert f"/attempts/{attempt}" not in before


def logins(page: str) -> set[str]:
    return {part.split("</span>")[0] for part in table(page).split('<span class="under">')[1:]} & {
        "anna",
        "ben",
        "robot",
    }
