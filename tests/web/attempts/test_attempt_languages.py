"""How an attempt went, in the language of its reader; its report, and what programs read, in English for everybody."""

from __future__ import annotations

import re

import pytest

from grader.model.grade import Verdict
from grader.report.audience import Audience
from grader.report.html.attempt_page import to_html
from grader.report.json_report import to_json
from grader.store.grading import reviews
from grader.store.grading.grades import new_grade
from tests.report import factory
from tests.web.conftest import School

GERMAN = {"Accept-Language": "de"}


@pytest.fixture
def number(school: School) -> int:
    """An attempt of Anna's that was not accepted, with all that a worker leaves of it."""
    attempt = factory.rejected()
    grade = new_grade(attempt.grade, to_json(attempt.grade, audience=Audience.STAFF))
    files = {
        "report.html": to_html(attempt, factory.PAGES, plots=()).encode(),
        "grade-learner.json": to_json(attempt.grade, audience=Audience.LEARNER).encode(),
    }
    return school.judge("anna", factory.SOURCE, grade, files=files)


def test_the_page_is_german_and_the_report_in_it_english(school: School, number: int) -> None:
    anna = school.client("anna")
    page = anna.get(f"/attempts/{number}", headers=GERMAN).text
    assert "<title>Dein 1. Versuch: Noch nicht angenommen: 45 von 100" in page
    around, report = re.split(r'(?=<main lang="en" id="main")', page)
    assert "Der Bericht unten ist auf Englisch." in around
    assert '<div lang="en" class="panel hero' in around
    assert "Noch nicht angenommen" in around
    assert "What to fix first" in report
    english = anna.get(f"/attempts/{number}").text
    assert "The report below is in English." not in english
    assert english[english.index("<main") : english.index("</main>")] == report[: report.index("</main>")]


def test_what_counts_is_told_in_the_readers_language_everywhere(school: School, number: int) -> None:
    reviews.override(school.store, number, Verdict.ACCEPTED, 70.5, "gut", actor_id=school.people["ines"])
    told = "Von Lehrenden angenommen: 70,5 von 100 (beurteilt: nicht angenommen, 45)"
    anna, ines, course = school.client("anna"), school.client("ines"), f"/courses/{school.course}"
    assert told in anna.get(f"/attempts/{number}", headers=GERMAN).text
    for language, words in (
        ("de", told),
        ("en", "Accepted by an instructor: 70.5 of 100 (judged rejected, 45)"),
    ):
        book = ines.get(f"{course}/gradebook", headers={"Accept-Language": language}).text
        assert f'title="{words}"' in book
    assert "von Hand gesetzt" in ines.get(f"{course}/gradebook", headers=GERMAN).text


def test_files_and_programs_get_the_same_whatever_language_one_reads(school: School, number: int) -> None:
    reviews.override(school.store, number, Verdict.ACCEPTED, 70.5, "gut", actor_id=school.people["ines"])
    course = f"/courses/{school.course}"
    for login, address in (
        ("anna", f"/attempts/{number}/report"),
        ("anna", f"/attempts/{number}/files/report.html"),
        ("anna", f"/attempts/{number}/files/grade-learner.json"),
        ("anna", f"/api/v1/attempts/{number}"),
        ("ines", f"{course}/exports/gradebook.csv"),
        ("ines", f"{course}/exports/gradebook.json"),
        ("ines", f"{course}/exports/attempts.csv"),
    ):
        client = school.client(login)
        english, german = client.get(address), client.get(address, headers=GERMAN)
        assert english.status_code == 200, address
        assert english.content == german.content, address
        assert "Accepted by an instructor: 70.5 of 100" in english.text, address
