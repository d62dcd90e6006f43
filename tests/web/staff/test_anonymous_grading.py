"""Anonymous grading: no page or file that staff get tells who is who, until somebody shows the names on purpose."""

from __future__ import annotations

import csv
import io
import re
import zipfile

import pytest

from grader.store.courses.enrolment_details import EnrolmentDetails, set_details
from grader.store.courses.grading_rules import (
    GradingRules,
    TaskGrading,
    grading_rules,
    set_grading_rules,
    set_task_grading,
)
from grader.store.events import audit_of
from grader.store.grading import regrades, reviews
from tests.web.conftest import TASKS, School
from tests.web.grades import graded


@pytest.fixture
def anonymous(school: School) -> tuple[School, int]:
    """The course grades anonymously; an attempt of `anna` is held, with what was said about it."""
    from grader.model.grade import Verdict
    from tests.store.campus import verdict_of

    rules = GradingRules(anonymous=True, regrade_days=7)
    set_grading_rules(school.store, school.course, rules, actor_id=school.people["ines"])
    attempt = school.judge("anna", grade=verdict_of(Verdict.HELD))
    made = reviews.comment(school.store, attempt, "Why?", author_id=school.people["ines"])
    anna = school.client("anna")
    anna.post(f"/attempts/{attempt}/comments/{made}/reply", data={"reply": "Because."})
    anna.post(f"/attempts/{attempt}/regrade-requests", data={"request": "Look again"})
    return school, attempt


def names_in(text: str, school: School) -> list[str]:
    """What of `anna` a page tells; lists of all people, as in a filter, tell of nobody."""
    text = re.sub(r"<option.*?</option>", "", text, flags=re.DOTALL)
    known = rf"\banna\b|(?:people/|person=|person_id\D{{1,4}}){school.people['anna']}\b"
    return re.findall(known, text, flags=re.IGNORECASE)


def staff_pages(school: School, attempt: int) -> list[str]:
    at = f"/courses/{school.course}"
    batch = regrades.queue_new_runs(school.store, [attempt], actor_id=school.people["ines"])
    return [
        f"/attempts/{attempt}",
        f"/attempts/{attempt}/review",
        f"/attempts/{attempt}/report",
        f"/regrades/{batch}?all=1",
        at,
        *(
            f"{at}/{one}"
            for one in (
                "attempts",
                "review",
                "gradebook",
                "gradebook?anonymous=1",
                "stuck?tries=2",
                "exports/gradebook.csv",
                "exports/gradebook.csv?anonymous=1",
                "exports/gradebook.json?anonymous=1",
                "exports/attempts.csv",
                f"exports/{school.task}/gradescope.zip",
                f"exports/{school.task}/junit.xml",
            )
        ),
        f"/api/v1/attempts/{attempt}",
        f"/api/v1/attempts/{attempt}/events",
        f"/api/v1/courses/{school.course}/attempts",
    ]


def test_no_page_or_file_of_staff_tells_whose_attempt_it_is(anonymous: tuple[School, int]) -> None:
    school, attempt = anonymous
    ines = school.client("ines")
    for page in staff_pages(school, attempt):
        answer = ines.get(page)
        told = names_in(answer.text, school)
        if page.endswith("/gradebook.csv"):
            # Who learns here is no secret; how they did is.
            assert "held" not in answer.text
            continue
        assert not told, f"{page} tells {told}"
    name = re.search(r"Learner [A-Z0-9]{4}-[A-Z0-9]{4}", ines.get(f"/attempts/{attempt}/review").text)
    assert name is not None
    at = f"/courses/{school.course}"
    for page in ("attempts", "review", "gradebook?anonymous=1", "exports/attempts.csv"):
        assert name[0] in ines.get(f"{at}/{page}").text, f"{page}: not the same pseudonym"
    # A filter by a person, and the person's page, would tell as much.
    anna = school.people["anna"]
    assert f'"/attempts/{attempt}"' not in ines.get(f"{at}/attempts?person={anna}").text
    assert f'"/attempts/{attempt}"' not in ines.get(f"{at}/people/{anna}").text
    assert "Anna" in school.client("anna").get(f"/attempts/{attempt}").text


def test_names_are_shown_on_purpose_and_that_is_on_record(anonymous: tuple[School, int]) -> None:
    school, attempt = anonymous
    ines, at = school.client("ines"), f"/courses/{school.course}"
    fields = {"regrade_days": "7"}
    asked = ines.post(f"{at}/grading", data=fields)
    assert "Show names instead of pseudonyms?" in asked.text
    assert grading_rules(school.store, school.course).anonymous
    ines.post(f"{at}/grading", data={**fields, "confirmed": "yes"})
    assert names_in(ines.get(f"/attempts/{attempt}/review").text, school)
    (event,) = audit_of(school.store, f"course:{school.course}", kind="names_revealed")
    assert event.actor_id == school.people["ines"]


def test_one_task_alone_can_be_anonymous_and_its_grades_stand_apart(school: School) -> None:
    first, second = (school.tasks[name] for name in TASKS)
    set_task_grading(
        school.store, school.course, first, TaskGrading(anonymous=True), actor_id=school.people["ines"]
    )
    hidden = school.judge("anna", grade=graded(), task=first)
    named = school.judge("anna", grade=graded(), task=second)
    ines, at = school.client("ines"), f"/courses/{school.course}"
    book = ines.get(f"{at}/gradebook").text
    assert f"/attempts/{named}" in book
    assert f"/attempts/{hidden}" not in book
    apart = ines.get(f"{at}/gradebook?anonymous=1").text
    assert f"/attempts/{hidden}" in apart
    assert not names_in(apart, school)
    assert names_in(ines.get(f"/attempts/{named}/review").text, school)


def test_pseudonyms_of_two_courses_have_nothing_in_common(school: School) -> None:
    for course in (school.course, school.other_course):
        set_grading_rules(school.store, course, GradingRules(anonymous=True), actor_id=school.people["ada"])
    from grader.store.grading.pseudonyms import anonymous_tasks, pseudonym

    keys = [
        next(iter(anonymous_tasks(school.store, one).values()))
        for one in (school.course, school.other_course)
    ]
    assert len({pseudonym(key, 1) for key in keys}) == 2


def test_the_archive_has_pseudonyms_where_pages_have_them_and_names_elsewhere(school: School) -> None:
    first, second = (school.tasks[name] for name in TASKS)
    set_task_grading(
        school.store, school.course, first, TaskGrading(anonymous=True), actor_id=school.people["ines"]
    )
    anna = {school.people["anna"]: EnrolmentDetails("A", "s-17")}
    set_details(school.store, school.course, anna, actor_id=None)
    hidden = school.judge("anna", grade=graded(), task=first)
    named = school.judge("anna", grade=graded(), task=second)
    ines, at = school.client("ines"), f"/courses/{school.course}/exports/submissions.zip"
    name = re.search(r"Learner [A-Z0-9]{4}-[A-Z0-9]{4}", ines.get(f"/attempts/{hidden}").text)
    assert name is not None
    for names in ("login", "pseudonym"):
        packed = zipfile.ZipFile(io.BytesIO(ines.get(f"{at}?names={names}").content))
        lines = list(csv.DictReader(io.StringIO(packed.read("manifest.csv").decode("utf-8-sig"))))
        by_attempt = {int(one["attempt"]): one for one in lines}
        apart = by_attempt[hidden]
        assert apart["login"] == name[0]
        assert (apart["name"], apart["section"], apart["external_id"], apart["counts"]) == ("", "", "", "yes")
        assert apart["folder"].split("/")[0] != by_attempt[named]["folder"].split("/")[0]
        assert f"{apart['folder']}/train.py" in packed.namelist()
        assert ("anna" in by_attempt[named]["folder"]) is (names == "login")


def test_a_regrade_by_person_leaves_out_what_is_graded_anonymously(anonymous: tuple[School, int]) -> None:
    school, _ = anonymous
    ines, at = school.client("ines"), f"/courses/{school.course}/regrades"
    wanted = {"which": "matching", "person": str(school.people["anna"]), "confirmed": "yes"}
    ines.post(at, data=wanted)
    assert regrades.batches_of(school.store, school.course) == ()
