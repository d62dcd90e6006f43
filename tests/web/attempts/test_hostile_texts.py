"""What learners write and print is shown and does nothing: HTML, SVG, control, bidi and formula characters everywhere.

Every page and every export is fetched by everybody who may, with hostile texts wherever a text can come from outside.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from grader.store.attempts import attempt_endings
from grader.store.courses import enrolments
from grader.store.events import add_live_events
from grader.store.grading import reviews
from grader.store.people import people
from grader.store.queue import claims
from grader.store.tables.person import Role
from tests.web.conftest import PASSWORD, School, make_school
from tests.web.grades import graded
from tests.web.routes import ways

HTML = "<script>alert(1)</script><img src=x onerror=alert(2)><svg/onload=alert(3)>"
HIDDEN = "a\x1b[31mred\x1b]0;title\x07\u202egnp.exe\u2066\x00\x85"
FORMULA = '=HYPERLINK("https://evil.example","click")'
QUOTED = "\"'><b onmouseover=alert(4)>"
ALL = HTML + HIDDEN + QUOTED


@pytest.fixture(scope="module")
def campus(
    empty_database: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[School, dict[str, object]]]:
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "grader.db").write_bytes(empty_database.read_bytes())
    school = make_school(folder / "grader.db", folder)
    store = school.store
    school.people["mallory"] = people.add_person(store, "mallory", FORMULA + ALL, password=PASSWORD)
    school.people["formula"] = people.add_person(store, "=1+1", "@SUM(A1)" + ALL, password=PASSWORD)
    for login in ("mallory", "formula"):
        enrolments.enrol(store, school.course, school.people[login], Role.LEARNER)
    program = school.program(school.token("mallory"))
    document = {
        "name": HTML + QUOTED + FORMULA,
        "files": [
            {"path": "train.py", "text": f"# {HTML}{QUOTED}\u202e\nx = '{HTML}'\n"},
            {"path": "<b onclick=alert(5)>.py", "text": "pass\n"},
        ],
    }
    taken = program.post(f"/api/v1/course-tasks/{school.task}/submissions", json=document)
    assert taken.status_code == 202, taken.text
    attempt = taken.json()["attempt_id"]
    claimed = claims.claim(store, "w1", ("cpu",))
    assert isinstance(claimed, claims.Claimed)
    told = [
        ("log", {"rank": 0, "stream": "stdout", "text": ALL}),
        ("phase", {"phase": HTML, "elapsed_s": 1.0}),
    ]
    assert add_live_events(store, attempt, claimed.lease_token, told)
    attempt_endings.finish(
        store, attempt, claimed.lease_token, graded(name=HTML + QUOTED, message=HTML + HIDDEN)
    )
    reviews.comment(store, attempt, ALL, author_id=school.people["ines"], path="train.py", line=1)
    yield (
        school,
        {
            "course_id": school.course,
            "course_task_id": school.task,
            "attempt_id": attempt,
            "person_id": school.people["mallory"],
        },
    )
    store.close()


@pytest.mark.parametrize("login", ["mallory", "ines", "ada"])
def test_hostile_texts_do_nothing_on_any_page(campus: tuple[School, dict[str, object]], login: str) -> None:
    school, values = campus
    browser = school.client(login)
    shown = 0
    for way in ways(school.app):
        if way.method != "GET" or not set(way.parameters) <= set(values):
            continue
        answer = browser.get(way.address(values))
        kind = answer.headers.get("content-type", "")
        if not kind.startswith("text/html"):
            continue
        text = answer.text
        for active in ("<script>alert", "<img src=x", "<svg/onload", "<b onmouseover", "<b onclick"):
            assert active not in text, f"{login} {way.path}: {active}"
        hidden = re.findall(
            "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]", text
        )
        assert not hidden, f"{login} {way.path}: {sorted(map(hex, map(ord, set(hidden))))}"
        shown += "&lt;script&gt;alert(1)" in text
    assert shown, "no page shows any of it; the test has lost its subject"


def test_tables_for_spreadsheets_hold_no_formulas(campus: tuple[School, dict[str, object]]) -> None:
    school, values = campus
    browser = school.client("ines")
    found = 0
    for way in ways(school.app):
        if way.method != "GET" or not set(way.parameters) <= set(values):
            continue
        answer = browser.get(way.address(values))
        if not answer.headers.get("content-type", "").startswith("text/csv"):
            continue
        found += 1
        for row in csv.reader(answer.text.splitlines()):
            for cell in row:
                assert not cell.lstrip().startswith(("=", "+", "@", "\t", "\r")), f"{way.path}: {cell!r}"
    assert found, "no route serves CSV; the test has lost its subject"


def test_events_are_json_whatever_they_hold(campus: tuple[School, dict[str, object]]) -> None:
    school, values = campus
    answer = school.client("mallory").get(f"/api/v1/attempts/{values['attempt_id']}/events")
    assert answer.headers["content-type"].startswith("application/json")
    assert answer.headers["x-content-type-options"] == "nosniff"
    texts = [one["data"].get("text", "") for one in json.loads(answer.text)]
    assert any("<script>" in text for text in texts)
