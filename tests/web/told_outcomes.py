"""What each place where the service tells of an attempt says of it: the same number, and the same sentence."""

from __future__ import annotations

import csv
import html
import io
import json
import re
import zipfile
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from rich.console import Console

from grader.client.answers import AttemptAnswer
from grader.model.attempt_result import AttemptResult
from grader.model.grade import Grade
from grader.model.submission import SourceFile, Submission
from grader.report.audience import Audience
from grader.report.json_report import from_json, to_json
from grader.report.terminal.attempt_text import print_grade
from grader.report.words.banner import outcome, sentence
from grader.report.words.wording import points_text
from grader.store.attempts import attempt_endings, attempt_results
from grader.store.attempts.attempt_endings import StoredFile
from grader.store.courses import courses
from grader.store.grading import certificates, regrades
from grader.store.grading.grades import NewGrade, new_grade
from grader.store.queue import claims
from tests.web.conftest import Browser, School

Told = tuple[float, str]
"""Points that count, and the sentence that says so."""
Left = tuple[NewGrade, dict[str, bytes]]
"""What a worker leaves of an attempt: the grade, and files by name."""
# How many places tell of an attempt among all of its course, and how many of it alone, to each reader.
_OF_A_COURSE, _OF_AN_ATTEMPT = 7, 4
_SUBMISSION = Submission("train", (SourceFile("train.py", ""),))


def words(text: str) -> str:
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", text))).replace(" :", ":")


def left_by(grade: Grade, report: str) -> Left:
    """What a worker hands to the store."""
    whole = to_json(grade, Audience.STAFF)
    files = {"report.html": report, "grade.json": whole, "grade-learner.json": to_json(grade)}
    return new_grade(grade, whole), {name: text.encode("utf-8", "replace") for name, text in files.items()}


def judge_again(school: School, outcomes: dict[int, Left]) -> tuple[int, ...]:
    """Regrade these attempts, come to what stands beside them, and let that count; the regrades in the same order."""
    batch = regrades.queue_new_runs(school.store, list(outcomes), actor_id=school.people["ines"])
    regrade_of = {one.regrade_id: one.attempt_id for one in regrades.preview(school.store, batch)}
    for _ in outcomes:
        claimed = claims.claim(school.store, "w1", ("cpu",))
        assert isinstance(claimed, claims.Claimed)
        grade, files = outcomes[regrade_of[claimed.attempt_id]]
        stored = [StoredFile(name, school.files.put(data), len(data)) for name, data in files.items()]
        attempt_endings.finish(school.store, claimed.attempt_id, claimed.lease_token, grade, stored)
    assert regrades.apply(school.store, batch, actor_id=school.people["ines"]) == len(outcomes)
    number_of = {before: now for now, before in regrade_of.items()}
    return tuple(number_of[number] for number in outcomes)


def only_required(school: School) -> None:
    """The course asks for its first task alone: whoever has it accepted earns a certificate."""
    for task in courses.tasks_of(school.store, school.course):
        terms = replace(task.terms, required=task.id == school.task)
        courses.set_task(school.store, school.course, task.task, task.profile, terms)


def certify(school: School, login: str, number: int) -> None:
    """The certificate of whose attempt this is says the same."""
    result = attempt_results.results_of(school.store, [number])[number]
    issued = certificates.issue(school.store, school.course, school.people[login])
    assert isinstance(issued, certificates.CertificateFacts)
    assert sentence(result) in words(school.client().get(f"/certificates/{issued.public_id}").text)


def hold(school: School, logins: dict[int, str], readers: Collection[str] = ("staff", "learner")) -> None:
    """Everybody is told the same of these attempts (number → whose), each of which counts for its learner."""
    results = attempt_results.results_of(school.store, logins)
    documents: dict[int, dict[str, Told]] = defaultdict(dict)
    for place, number, said in (*_course(school, logins), *_attempts(school, logins, readers)):
        assert place not in documents[number], "told once"
        documents[number][place] = said
    assert documents.keys() == results.keys() == logins.keys()
    places = {place for said in documents.values() for place in said}
    assert len(places) == _OF_A_COURSE + _OF_AN_ATTEMPT * len(readers)
    for number, result in results.items():
        assert 0 <= result.points <= result.max_points <= 100
        assert {place: said[1] for place, said in documents[number].items()} == dict.fromkeys(
            places, sentence(result)
        )
        points = {place: said[0] for place, said in documents[number].items()}
        assert points == pytest.approx(dict.fromkeys(places, result.points)), number
        _pages(school.client(logins[number]), number, result)


def hold_in_lists(school: School, login: str, number: int) -> None:
    """The pages that list attempts say it, too."""
    result = attempt_results.results_of(school.store, [number])[number]
    head, _, rest = words(sentence(result)).partition(": ")
    learner, staff = school.client(login), school.client("ines")
    for page in (f"/courses/{school.course}", f"/courses/{school.course}/tasks/{school.task}"):
        text = words(learner.get(page).text)
        assert head in text, page
        assert rest in text, page
    assert html.escape(sentence(result)) in staff.get(f"/courses/{school.course}/gradebook").text
    assert rest in words(staff.get(f"/courses/{school.course}/attempts").text)


def _attempts(
    school: School, logins: dict[int, str], readers: Collection[str]
) -> Iterator[tuple[str, int, Told]]:
    staff = school.client("ines")
    for number, login in logins.items():
        for who in readers:
            browser = staff if who == "staff" else school.client(login)
            attempt = browser.get(f"/api/v1/attempts/{number}").json()
            yield f"programming interface, {who}", number, (attempt["points"], attempt["outcome"])
            grade = browser.get(f"/api/v1/attempts/{number}/grade")
            yield f"grade, {who}", number, _counts(grade.text)
            name = {"staff": "grade.json", "learner": "grade-learner.json"}[who]
            yield name, number, _counts(browser.get(f"/attempts/{number}/files/{name}").text)
            # The command line tells what the programming interface says.
            result = AttemptAnswer.of(attempt).result
            assert result is not None
            screen = Console(file=io.StringIO(), width=200)
            print_grade(from_json(grade.text), _SUBMISSION, screen, result)
            assert sentence(result) in screen.file.getvalue()  # type: ignore[attr-defined]
            yield f"command line, {who}", number, (result.points, sentence(result))


def _counts(document: str) -> Told:
    """What a grade's document says counts; what was judged stands beside it, and is the sum of its items."""
    grade = from_json(document)
    assert sum(item.earned for item in grade.rubric) == pytest.approx(grade.points)
    assert sum(item.points for item in grade.rubric) == pytest.approx(grade.max_points)
    counts = json.loads(document)["counts"]
    return counts["points"], counts["outcome"]


def _course(school: School, logins: dict[int, str]) -> Iterator[tuple[str, int, Told]]:
    """What is told of a whole class at once."""
    staff, course = school.client("ines"), f"/courses/{school.course}"
    exports, numbers = f"{course}/exports", {login: number for number, login in logins.items()}
    before, listed = "", []
    while page := staff.get(f"/api/v1{course}/attempts?limit=200{before}").json():
        listed += page
        before = f"&before={page[-1]['id']}"
    for one in listed:
        if one["id"] in logins:
            yield "list of the programming interface", one["id"], (one["points"], one["outcome"])
    for row in staff.get(f"/api/v1{course}/gradebook").json()["learners"]:
        for cell in row["cells"]:
            yield (
                "gradebook of the programming interface",
                cell["attempt_id"],
                (cell["points"], cell["outcome"]),
            )
    for row in json.loads(staff.get(f"{exports}/gradebook.json").text)["people"]:
        for cell in row["tasks"]:
            yield "gradebook.json", cell["attempt"], (cell["points"], cell["outcome"])
    for row in _rows(staff, f"{exports}/attempts.csv"):
        if (number := int(row["attempt"])) in logins:
            yield "attempts.csv", number, (float(row["points"]), row["outcome"])
    for row in _rows(staff, f"{exports}/gradebook.csv"):
        if row["login"] in numbers:
            (points,) = (row[name] for name in row if name.endswith(" points") and row[name])
            (said,) = (row[name] for name in row if name.endswith(" outcome") and row[name])
            yield "gradebook.csv", numbers[row["login"]], (float(points), said)
    packed = zipfile.ZipFile(io.BytesIO(staff.get(f"{exports}/{school.task}/gradescope.zip").content))
    scale = {
        number: one.max_points for number, one in attempt_results.results_of(school.store, logins).items()
    }
    for name in packed.namelist():
        number, document = numbers[name.partition("/")[0]], json.loads(packed.read(name))
        # Gradescope's own scale is 100, whatever an attempt was judged on.
        points = document["score"] * scale[number] / document["max_score"]
        yield (
            "gradescope",
            number,
            (points, document["output"].partition("\n\n")[0].partition(". ")[0].rstrip(".")),
        )
    suites = ElementTree.fromstring(staff.get(f"{exports}/{school.task}/junit.xml").content)
    for suite in suites.iter("testsuite"):
        counts = {str(one.get("name")): str(one.get("value")) for one in suite.iter("property")}
        yield "JUnit", numbers[str(suite.get("name"))], (float(counts["points"]), counts["outcome"])
        assert suite.get("tests") == str(len(suite.findall("testcase")))


def _rows(browser: Browser, page: str) -> Collection[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(browser.get(page).content.decode("utf-8-sig"))))


def _pages(learner: Browser, number: int, result: AttemptResult) -> None:
    """The sentence stands on the attempt's pages and in their titles, and the sum of points leads to what counts."""
    # Since when something is held, a page tells in the reader's own time.
    said = words(sentence(result) if result.held_since is None else outcome(result))
    for page in (f"/attempts/{number}", f"/attempts/{number}/report"):
        text = learner.get(page).text
        assert said in words(text), page
        title = text[text.index("<title>") : text.index("</title>")]
        assert said in html.unescape(title), page
        table = words(text[text.index('id="points"') :].partition("</table>")[0])
        below = table.rpartition("Together ")[2].strip()
        most = points_text(result.max_points)
        judged = f"{points_text(result.judged_points)} / {most}"
        assert below.startswith(judged), page
        assert below == judged or below.endswith(f"Counts {points_text(result.points)} of {most}"), page
        assert below != judged or result.points == result.judged_points, page
