"""The gradebook, what leaves it, and the class views, as an instructor meets them."""

from __future__ import annotations

import csv
import io
import json
import re
import zipfile
from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree

import pytest

from grader.model.grade import Verdict
from grader.store.courses import courses, enrolments
from grader.store.courses.courses import TaskTerms
from grader.store.grading import certificates, reviews
from grader.store.people import people
from grader.store.tables.course_task import LatePolicy
from grader.web.staff.gradebook_table import PAGE
from tests.report.document import Document
from tests.store.campus import VERSION, verdict_of
from tests.web.conftest import School
from tests.web.grades import graded

HOSTILE = "<img src=x onerror=alert(1)> \u202eevil"
FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "  =1", "＝1", '"=1', "'=1", "\r=1"]


def cells(text: str) -> dict[str, list[str]]:
    """What is seen of each learner's row, by login, cell by cell."""
    text = re.sub(r'<span class="visually-hidden">.*?</span>', "", text)
    rows = re.findall(r"<tr><th scope=\"row\"><a[^>]*>.*?</tr>", text, re.DOTALL)
    found = {}
    for row in rows:
        login = re.search(r'<span class="under">(.*?)</span>', row)
        assert login is not None
        found[login[1]] = [
            " ".join(re.sub(r"<[^>]+>", " ", cell).split())
            for cell in re.findall(r"<td.*?</td>", row, re.DOTALL)
        ]
    return found


def page(school: School, query: str = "", login: str = "ines") -> str:
    answer = school.client(login).get(f"/courses/{school.course}/gradebook{query}")
    assert answer.status_code == 200, answer.text
    return answer.text


def read_csv(data: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(data.decode("utf-8-sig"))))


def test_a_cell_says_what_counts_in_words(school: School) -> None:
    attempt = school.judge("anna", grade=verdict_of(Verdict.ACCEPTED, 90.0))
    judged = school.judge("ben", grade=verdict_of(Verdict.REJECTED, 40.0))
    reviews.override(
        school.store, judged, Verdict.ACCEPTED, 75.0, "seen in person", actor_id=school.people["ines"]
    )
    school.hand_in("robot")
    text = page(school)
    rows = cells(text)
    assert rows["anna"] == ["45 %", "1", "✔ 90", "–"]
    assert rows["ben"] == ["38 %", "1", "✔ 75 set by hand", "–"]
    assert rows["robot"] == ["0 %", "0", "…", "–"]
    assert f'href="/attempts/{attempt}"' in text
    hidden = re.findall(
        r'<td.*?<span class="visually-hidden">(.*?)</span>', text.split("<tbody>")[1].split("</tbody>")[0]
    )
    told = [
        "; Accepted: 90 of 100",
        "not handed in",
        "; Accepted by an instructor: 75 of 100 (judged rejected, 40",
        "not handed in",
        "not judged yet",
        "not handed in",
    ]
    assert [one[: len(said)] for one, said in zip(hidden, told, strict=True)] == told, (
        "who cannot see the signs hears the same sentence"
    )


def test_late_work_is_marked_and_worth_less(school: School) -> None:
    task = courses.tasks_of(school.store, school.course)[0]
    due = datetime.now(UTC) - timedelta(days=1, hours=12)
    terms = TaskTerms(
        task.terms.title, task.terms.version, due_at=due, late_policy=LatePolicy.REDUCED, late_loss=0.1
    )
    courses.set_task(school.store, school.course, task.task, task.profile, terms)
    school.judge("anna", grade=verdict_of(Verdict.ACCEPTED, 100.0))
    assert cells(page(school))["anna"][2] == "✔ 80 late 2 d"


def test_totals_follow_the_weights(school: School) -> None:
    first, second = courses.tasks_of(school.store, school.course)
    courses.set_task(
        school.store, school.course, second.task, second.profile, TaskTerms("Heavy", VERSION, weight=3.0)
    )
    school.judge("anna", grade=verdict_of(Verdict.ACCEPTED, 100.0), task=first.id)
    school.judge("ben", grade=verdict_of(Verdict.ACCEPTED, 100.0), task=second.id)
    rows = cells(page(school))
    assert (rows["anna"][0], rows["ben"][0], rows["robot"][0]) == ("25 %", "75 %", "0 %")


def test_columns_sort_by_links_and_turn_round(school: School) -> None:
    school.judge("anna", grade=verdict_of(Verdict.REJECTED, 90.0))
    school.judge("ben", grade=verdict_of(Verdict.ACCEPTED, 20.0))
    assert list(cells(page(school))) == ["anna", "ben", "robot"]
    assert list(cells(page(school, "?sort=total&order=down"))) == ["anna", "ben", "robot"]
    # Accepted comes before more points.
    by_task = page(school, f"?sort={school.task}&order=down")
    assert list(cells(by_task)) == ["ben", "anna", "robot"]
    assert 'aria-sort="descending"' in by_task
    assert list(cells(page(school, f"?sort={school.task}&order=up"))) == ["robot", "anna", "ben"]
    assert list(cells(page(school, "?sort=nonsense&order=down"))) == ["robot", "ben", "anna"]


def test_it_sorts_by_family_name_too(school: School) -> None:
    for login, name in (("zoe", "Zoe Abel"), ("carl", "Carl van der Berg")):
        person = people.add_person(school.store, login, name)
        enrolments.enrol(school.store, school.course, person)
    assert list(cells(page(school, "?sort=family")))[:4] == ["zoe", "anna", "ben", "carl"]


def test_a_search_leaves_the_figures_of_the_class_alone(school: School) -> None:
    school.judge("anna", grade=verdict_of(Verdict.ACCEPTED, 100.0))
    whole, found = page(school), page(school, "?q=ben")
    figures = re.compile(r'<dl class="strip figures-line">.*?</dl>', re.DOTALL)
    assert figures.findall(found) == figures.findall(whole)
    assert "1 learner found" in found


def test_searching_and_pages(school: School) -> None:
    for number in range(PAGE + 3):
        person = people.add_person(school.store, f"more{number:03}", f"More {number:03}")
        enrolments.enrol(school.store, school.course, person)
    assert len(cells(page(school))) == PAGE
    assert list(cells(page(school, "?page=2")))[-1] == "robot"
    assert list(cells(page(school, "?page=99"))) == list(cells(page(school, "?page=2")))
    assert list(cells(page(school, "?q=MORE+01"))) == [f"more{number:03}" for number in range(10, 20)]
    assert "Nobody is called that" in page(school, "?q=%3Cscript%3E")


def test_a_hostile_name_is_text_everywhere(school: School) -> None:
    person = people.add_person(school.store, "mallory", HOSTILE)
    enrolments.enrol(school.store, school.course, person)
    school.people["mallory"] = person
    attempt = school.judge("mallory", grade=graded(Verdict.REJECTED))
    at = f"/courses/{school.course}"
    places = ["gradebook", "attempts", "people", f"people/{person}", "stuck?tries=2", "extensions", "audit"]
    for place in [
        *(f"{at}/{one}" for one in places),
        f"/attempts/{attempt}/review",
        "/admin/people",
        "/queue",
    ]:
        text = school.client("ada").get(place).text
        document = Document(text)
        assert not document.all("img"), place
        assert not document.unbalanced, place
        assert "\u202e" not in text, place


@pytest.mark.parametrize("name", FORMULAS)
def test_no_cell_of_a_csv_starts_a_formula(school: School, name: str) -> None:
    person = people.add_person(school.store, "mallory", name)
    enrolments.enrol(school.store, school.course, person)
    school.people["mallory"] = person
    school.judge("mallory")
    for file in ("gradebook.csv", "attempts.csv"):
        answer = school.client("ines").get(f"/courses/{school.course}/exports/{file}")
        for row in read_csv(answer.content):
            for cell in row:
                assert not cell.lstrip(' \t\r\n"').startswith(tuple("=+-@＝")), cell


def test_the_csv_reads_back_as_it_counts(school: School) -> None:
    school.judge("anna", grade=verdict_of(Verdict.ACCEPTED, 87.5))
    answer = school.client("ines").get(f"/courses/{school.course}/exports/gradebook.csv")
    assert answer.headers["content-disposition"] == 'attachment; filename="ddp-gradebook.csv"'
    assert answer.content.startswith(b"\xef\xbb\xbf"), "spreadsheets read UTF-8 by this mark"
    header, *rows = read_csv(answer.content)
    anna = dict(zip(header, rows[0], strict=True))
    assert (anna["login"], anna["total_percent"], anna["required_accepted"]) == ("anna", "43.75", "1")
    assert (anna["ddp-toy points"], anna["ddp-toy of"], anna["ddp-toy verdict"]) == (
        "87.5",
        "100",
        "accepted",
    )
    assert anna["ddp-fashion points"] == ""


def test_the_json_is_of_schema_1(school: School) -> None:
    attempt = school.judge("anna", grade=verdict_of(Verdict.ACCEPTED, 87.5))
    document = school.client("ines").get(f"/courses/{school.course}/exports/gradebook.json").json()
    assert document["schema"] == 1
    (cell,) = next(one for one in document["people"] if one["login"] == "anna")["tasks"]
    assert (cell["attempt"], cell["points"], cell["verdict"], cell["num_attempts"]) == (
        attempt,
        87.5,
        "accepted",
        1,
    )


def test_gradescope_gets_what_counts_and_nothing_for_staff(school: School) -> None:
    judged = school.judge("anna", grade=graded(Verdict.REJECTED))
    school.judge("ben", grade=graded(Verdict.REJECTED))
    reviews.override(school.store, judged, Verdict.ACCEPTED, 100.0, "fine", actor_id=school.people["ines"])
    answer = school.client("ines").get(f"/courses/{school.course}/exports/{school.task}/gradescope.zip")
    archive = zipfile.ZipFile(io.BytesIO(answer.content))
    assert archive.namelist() == ["anna/results.json", "ben/results.json"]
    anna, ben = (json.loads(archive.read(name)) for name in archive.namelist())
    assert anna["score"] == anna["max_score"]
    assert anna["extra_data"]["verdict"] == "accepted"
    assert anna["output"].startswith("Accepted by an instructor: 100 of 100 (judged rejected, 40).")
    assert "As judged: Not accepted yet. " in anna["output"]
    assert ben["score"] < ben["max_score"]
    assert "only-staff-may-read-this" not in json.dumps([anna, ben])


def test_two_logins_that_spell_alike_get_a_folder_each(school: School) -> None:
    for login in ("a/b", "a?b"):
        person = people.add_person(school.store, login, login)
        enrolments.enrol(school.store, school.course, person)
        school.people[login] = person
        school.judge(login, grade=graded())
    answer = school.client("ines").get(f"/courses/{school.course}/exports/{school.task}/gradescope.zip")
    names = zipfile.ZipFile(io.BytesIO(answer.content)).namelist()
    assert len(set(names)) == 2
    assert not any(".." in name or name.startswith("/") or name.count("/") != 1 for name in names)


def test_junit_holds_a_suite_per_learner(school: School) -> None:
    school.judge("anna", grade=graded(Verdict.REJECTED))
    school.judge("ben", grade=graded(Verdict.ACCEPTED))
    answer = school.client("ines").get(f"/courses/{school.course}/exports/{school.task}/junit.xml")
    root = ElementTree.fromstring(answer.content)
    assert [suite.get("name") for suite in root] == ["anna", "ben"]
    assert root.get("tests") == str(len(root.findall(".//testcase")))


def test_certificates_come_in_one_pile(school: School) -> None:
    for task in school.tasks.values():
        school.judge("anna", grade=verdict_of(Verdict.ACCEPTED, 100.0), task=task)
    ines, at = school.client("ines"), f"/courses/{school.course}/exports"
    assert "Issue 1 and print all" in ines.get(at).text
    assert ines.post(f"{at}/certificates").status_code == 303
    pile = ines.get(f"{at}/certificates").text
    (one,) = certificates.certificates_of(school.store, school.course)
    assert one.public_id in pile
    assert pile.count('class="certificate"') == 1
    assert "Anna" in pile
    assert "Ben" not in pile


def test_the_projector_shows_no_name(school: School) -> None:
    school.judge("anna", grade=verdict_of(Verdict.REJECTED, 40.0, ("DATA001",)))
    school.judge("ben", grade=verdict_of(Verdict.REJECTED, 40.0, ("DATA001", "GRAD001")))
    text = school.client("ines").get(f"/courses/{school.course}/checks?projector=1&task={school.task}").text
    assert "2 of 2 learners have it now" in text
    for name in ("Anna", "anna", "Ben", "ben", "Ines"):
        assert not re.search(rf"\b{name}\b", text), name


def test_who_is_stuck_is_found_and_who_got_through_is_not(school: School) -> None:
    for _ in range(3):
        school.judge("anna", grade=verdict_of(Verdict.REJECTED, 40.0, ("DATA001",)))
        school.judge("ben", grade=verdict_of(Verdict.REJECTED, 40.0, ("DATA001",)))
    school.judge("ben", grade=verdict_of(Verdict.ACCEPTED, 100.0))
    text = school.client("ines").get(f"/courses/{school.course}/stuck").text
    assert "Anna" in text
    assert "DATA001" in text
    assert "Ben" not in text


def test_who_is_stuck_is_told_with_what_counts_once_an_instructor_decided(school: School) -> None:
    *_, number = [school.judge("anna", grade=verdict_of(Verdict.HELD, 90.0)) for _ in range(3)]
    place = f"/courses/{school.course}/stuck"
    assert "With the instructors since" in school.client("ines").get(place).text
    reviews.override(school.store, number, Verdict.REJECTED, 50.0, "See me.", actor_id=school.people["ines"])
    text = school.client("ines").get(place).text
    assert "Not accepted by an instructor" in text
    assert "50 of 100" in text
    assert "held" not in text, "what was judged counts no longer"


def test_attempts_are_filtered(school: School) -> None:
    wrong = school.judge("anna", grade=verdict_of(Verdict.REJECTED, 40.0, ("DATA001",)))
    right = school.judge("anna", grade=verdict_of(Verdict.ACCEPTED, 100.0))
    bens = school.judge(
        "ben", grade=verdict_of(Verdict.REJECTED, 10.0, ("GRAD001",)), task=school.tasks["ddp-fashion"]
    )
    waiting = school.hand_in("ben")
    ines, at = school.client("ines"), f"/courses/{school.course}/attempts"

    def ids(query: str) -> list[int]:
        return [
            int(found) for found in re.findall(r'<a href="/attempts/(\d+)">#', ines.get(f"{at}?{query}").text)
        ]

    assert ids("") == [waiting, bens, right, wrong]
    assert ids(f"person={school.people['anna']}") == [right, wrong]
    assert ids(f"task={school.tasks['ddp-fashion']}") == [bens]
    assert ids("verdict=rejected") == [bens, wrong]
    assert ids("code=data001") == [wrong]
    assert ids("state=queued") == [waiting]
    assert ids(f"before={right}") == [wrong]
    assert ids("verdict=nonsense&state=x&before=x&task=x") == ids("")
    assert ines.get(f"{at}?task=%00").status_code == 400
