"""One number, wherever an attempt is told of: as it was judged, after a regrade, late, and after an instructor decided.

Grades of every ending go through the database; pages, reports, exports, the programming interface and the certificate
are asked for what counts.
"""

from __future__ import annotations

import csv
import html
import io
import json
import re
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
from rich.console import Console

from grader.judging.attempt import Attempt
from grader.model.attempt_result import AttemptResult
from grader.model.grade import Grade, Verdict
from grader.report.audience import Audience
from grader.report.banner import sentence
from grader.report.html import to_html
from grader.report.json_report import from_json, to_json
from grader.report.terminal import print_grade
from grader.report.wording import points_text
from grader.store import attempt_endings, attempt_results, certificates, claims, courses, regrades, reviews
from grader.store.attempt_endings import StoredFile
from grader.store.clock import now
from grader.store.grades import new_grade
from grader.store.tables.course_task import LatePolicy
from tests.report import factory
from tests.web.conftest import School

NAMES = ("accepted", "rejected", "deadlocked", "crashed", "does_not_parse", "hostile", "near_miss")


def consistent(grade: Grade) -> Grade:
    """A made-up grade whose points are those of its items."""
    return replace(grade, points=round(sum(item.earned for item in grade.rubric), 2))


def stored(school: School, attempt: Attempt, login: str = "anna") -> int:
    grade = attempt.grade
    files = {
        "report.html": to_html(attempt, {}).encode(),
        "grade.json": to_json(grade, Audience.STAFF).encode(),
        "grade-learner.json": to_json(grade).encode(),
    }
    return school.judge(login, grade=new_grade(grade, to_json(grade, Audience.STAFF)), files=files)


def words(text: str) -> str:
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", text))).replace(" :", ":")


def told(school: School, number: int) -> Iterator[tuple[str, float]]:
    """Where the attempt is told of to a program → its points."""
    staff = school.client("ines")
    course = f"/courses/{school.course}"
    api = staff.get(f"/api/v1/attempts/{number}").json()
    yield "programming interface", api["points"]
    (listed,) = [one for one in staff.get(f"/api/v1{course}/attempts").json() if one["id"] == number]
    yield "its list", listed["points"]
    book = staff.get(f"/api/v1{course}/gradebook").json()
    (cell,) = [c for row in book["learners"] for c in row["cells"] if c["attempt_id"] == number]
    yield "its gradebook", cell["points"]
    book = json.loads(staff.get(f"{course}/exports/gradebook.json").text)
    (cell,) = [c for row in book["people"] for c in row["tasks"] if c["attempt"] == number]
    yield "gradebook.json", cell["points"]
    rows = csv.DictReader(
        io.StringIO(staff.get(f"{course}/exports/attempts.csv").content.decode("utf-8-sig"))
    )
    (row,) = [row for row in rows if row["attempt"] == str(number)]
    yield "attempts.csv", float(row["points"])
    rows = csv.DictReader(
        io.StringIO(staff.get(f"{course}/exports/gradebook.csv").content.decode("utf-8-sig"))
    )
    (row,) = [row for row in rows if row["login"] == "anna"]
    yield "gradebook.csv", float(next(value for name, value in row.items() if name.endswith(" points")))
    packed = zipfile.ZipFile(io.BytesIO(staff.get(f"{course}/exports/{school.task}/gradescope.zip").content))
    yield "gradescope", json.loads(packed.read("anna/results.json"))["score"]


def hold(school: School, number: int, points: float) -> None:
    """Everybody says this number, and people read the same sentence everywhere."""
    result = attempt_results.results_of(school.store, [number])[number]
    assert result.points == pytest.approx(points)
    assert dict(told(school, number)) == dict.fromkeys(dict(told(school, number)), pytest.approx(points))
    said = words(sentence(result))
    anna, ines = school.client("anna"), school.client("ines")
    for page in (f"/attempts/{number}", f"/attempts/{number}/report"):
        text = anna.get(page).text
        assert said in words(text), page
        title = text[text.index("<title>") : text.index("</title>")]
        assert said in html.unescape(title), page
        table = words(text[text.index('id="points"') :].partition("</table>")[0])
        # What follows the sum leads from it to what counts.
        below = table.rpartition("Together ")[2].strip()
        judged, counts = (
            f"{points_text(one)} / {points_text(result.max_points)}"
            for one in (result.judged_points, result.points)
        )
        assert below.startswith(judged), page
        assert below == judged or below.endswith(f"Counts {counts.replace(' / ', ' of ')}"), page
        assert below != judged or result.points == result.judged_points, page
    short = said.partition(": ")
    for page in (f"/courses/{school.course}", f"/courses/{school.course}/tasks/{school.task}"):
        text = words(anna.get(page).text)
        assert short[0] in text, page
        assert short[2] in text, page
    assert html.escape(sentence(result)) in ines.get(f"/courses/{school.course}/gradebook").text
    assert short[2] in words(ines.get(f"/courses/{school.course}/attempts").text)


@pytest.mark.parametrize("name", NAMES)
def test_every_ending_is_one_number_everywhere(school: School, name: str) -> None:
    attempt = getattr(factory, name)()
    attempt = replace(attempt, grade=consistent(attempt.grade))
    grade = attempt.grade
    assert 0 <= grade.points <= grade.max_points == 100
    assert from_json(to_json(grade)).points == grade.points
    screen = Console(file=io.StringIO(), width=200)
    print_grade(grade, attempt.submission, screen)
    assert sentence(AttemptResult.of(grade)) in screen.file.getvalue()  # type: ignore[attr-defined]
    number = stored(school, attempt)
    hold(school, number, grade.points)
    reviews.override(school.store, number, Verdict.ACCEPTED, 92.0, "seen", actor_id=school.people["ines"])
    hold(school, number, 92.0)
    reviews.withdraw_override(school.store, number, actor_id=school.people["ines"])
    hold(school, number, grade.points)


@pytest.mark.parametrize(
    ("name", "verdict", "points", "change"),
    [("accepted", Verdict.REJECTED, 80.0, "−20"), ("rejected", Verdict.ACCEPTED, 92.0, "+")],
)
def test_nothing_below_an_overridden_head_says_the_opposite(
    school: School, name: str, verdict: Verdict, points: float, change: str
) -> None:
    attempt = getattr(factory, name)()
    number = stored(school, replace(attempt, grade=consistent(attempt.grade)))
    reviews.override(school.store, number, verdict, points, "seen", actor_id=school.people["ines"])
    for page in (f"/attempts/{number}", f"/attempts/{number}/report"):
        text = words(school.client("anna").get(page).text)
        assert "None of this stands in the way of acceptance" not in text, page
        assert "What to fix first" not in text, page
        assert "between you and an accepted attempt" not in text, page
        assert "do not stand in the way" not in text, page
        assert f"Set by Ines {change}" in text, page


def test_a_regrade_replaces_the_number_everywhere(school: School) -> None:
    attempt = replace(factory.rejected(), grade=consistent(factory.rejected().grade))
    number = stored(school, attempt)
    better = replace(factory.accepted(), grade=consistent(factory.accepted().grade))
    batch = regrades.queue_new_runs(school.store, [number], actor_id=school.people["ines"])
    claimed = claims.claim(school.store, "w1", ("cpu",))
    assert isinstance(claimed, claims.Claimed)
    grade = new_grade(better.grade, to_json(better.grade, Audience.STAFF))
    report = to_html(better, {}).encode()
    left = [StoredFile("report.html", school.files.put(report), len(report))]
    attempt_endings.finish(school.store, claimed.attempt_id, claimed.lease_token, grade, left)
    regrades.apply(school.store, batch, actor_id=school.people["ines"])
    hold(school, claimed.attempt_id, better.grade.points)


def test_lateness_is_told_where_it_costs_and_the_certificate_says_the_same(school: School) -> None:
    task = courses.course_task(school.store, school.task)
    assert task is not None
    with school.store.read() as connection:
        late = now(connection) - timedelta(hours=30)
    terms = replace(task.terms, due_at=late, late_policy=LatePolicy.REDUCED, late_loss=0.05)
    courses.set_task(school.store, school.course, task.task, task.profile, terms)
    for other in courses.tasks_of(school.store, school.course):
        if other.id != school.task:
            optional = replace(other.terms, required=False)
            courses.set_task(school.store, school.course, other.task, other.profile, optional)
    attempt = replace(factory.accepted(), grade=consistent(factory.accepted().grade))
    number = stored(school, attempt)
    result = attempt_results.results_of(school.store, [number])[number]
    assert sentence(result) == "Accepted: 90 of 100 (judged 100; 2 days late, −10 %)"
    hold(school, number, 90.0)
    issued = certificates.issue(school.store, school.course, school.people["anna"])
    assert isinstance(issued, certificates.CertificateFacts)
    page = school.client().get(f"/certificates/{issued.public_id}").text
    assert sentence(result) in words(page)
