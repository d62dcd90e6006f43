"""A course's life as its people see it: draft, other words, copy, late days, archive, and its end."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from grader.store.attempts import submissions
from grader.store.courses import courses, enrolments
from grader.store.grading import certificates
from grader.store.grading.progress import progress
from grader.store.tables.api_token import Scope
from grader.store.tables.course_task import LatePolicy
from grader.store.tables.person import Role
from tests.store.campus import script, verdict_of
from tests.web.conftest import TASKS, School


def set_terms(school: School, **terms: Any) -> None:
    """Set the terms of the course's first task."""
    there = courses.course_task(school.store, school.task)
    assert there is not None
    changed = replace(there.terms, **terms)
    courses.set_task(school.store, school.course, TASKS[0], "cpu", changed)


def test_a_draft_course_is_nobody_s_but_its_staff_s(school: School) -> None:
    ada, anna, ines = school.client("ada"), school.client("anna"), school.client("ines")
    page = ada.get("/admin/courses").text
    assert 'name="draft" value="on" checked' in page
    sent = {"title": "Next term", "name": "next", "teacher": "ines", "draft": "on"}
    settings = ada.post("/admin/courses", data=sent).headers["location"]
    course = settings.removesuffix("/settings")
    enrolments.enrol(school.store, int(course.rpartition("/")[2]), school.people["anna"])
    assert "Next term" not in anna.get("/").text
    assert anna.get(course).status_code == 404
    named = school.program(school.token("anna", Scope.READ)).get("/api/v1/courses").json()
    assert [one["name"] for one in named] == ["ddp"]
    assert "A draft: only the staff sees this course" in ines.get(course).text
    assert "Publish the course" in ines.get(settings).text
    ines.post(f"{course}/publish")
    assert anna.get(course).status_code == 200
    assert "was published before" in ines.get(ines.post(f"{course}/publish").headers["location"]).text


def test_a_course_is_called_otherwise(school: School) -> None:
    ines, words = school.client("ines"), f"/courses/{school.course}/words"
    assert 'value="ddp"' in ines.get(words).text
    answer = ines.post(words, data={"title": "New", "about": "Text", "name": "other"})
    assert answer.status_code == 422
    assert "a course named other already" in answer.text
    assert ines.post(words, data={"title": "New", "about": "Text", "name": "ddp-2"}).status_code == 303
    found = courses.course(school.store, school.course)
    assert found is not None
    assert (found.title, found.about, found.name) == ("New", "Text", "ddp-2")


def test_a_copy_is_looked_at_before_it_is_made(school: School) -> None:
    due = datetime(2026, 9, 11, 16, tzinfo=UTC)
    set_terms(school, due_at=due, weight=3.0)
    ines, copy = school.client("ines"), f"/courses/{school.course}/copy"
    assert 'value="2026-09-11"' in ines.get(copy).text
    sent = {"title": "Spring", "name": "ddp", "first_day": "2027-03-02", "weekdays": "on"}
    assert "a course named ddp already" in ines.post(copy, data=sent).text
    sent["name"] = "ddp-spring"
    looked = ines.post(copy, data={**sent, "action": "look"})
    assert "Fri 5 Mar 2027, 16:00" in looked.text
    assert "was Fri 11 Sep 2026, 16:00" in looked.text
    assert len(courses.courses(school.store)) == 2, "nothing was made"
    place = ines.post(copy, data={**sent, "action": "make"}).headers["location"]
    made = courses.course(school.store, int(place.split("/")[2]))
    assert made is not None
    assert (made.name, made.title, made.draft) == ("ddp-spring", "Spring", True)
    tasks = courses.tasks_of(school.store, made.id)
    assert [one.task for one in tasks] == list(TASKS)
    assert (tasks[0].terms.due_at, tasks[0].terms.weight) == (datetime(2027, 3, 5, 16, tzinfo=UTC), 3.0)
    people = enrolments.participants(school.store, made.id)
    assert [(one.login, one.role) for one in people] == [("ines", Role.INSTRUCTOR)]
    for day in ("soon", "0001-01-01"):
        assert ines.post(copy, data={**sent, "name": "x", "first_day": day}).status_code == 422


def test_late_days_are_told_before_and_after(school: School) -> None:
    due = datetime.now(UTC) - timedelta(hours=30)
    set_terms(school, due_at=due, late_policy=LatePolicy.REDUCED, late_loss=0.1)
    ines, anna = school.client("ines"), school.client("anna")
    late = f"/courses/{school.course}/late-days"
    task = f"/courses/{school.course}/tasks/{school.task}"
    assert "counts as 2 days late: −20 %" in anna.get(task).text
    ines.post(late, data={"late_days_total": "5", "late_days_per_task": "3"})
    assert (
        'name="late_days_total" min="0" max="365" value="5"'
        in ines.get(f"/courses/{school.course}/settings").text
    )
    assert "2 late days of your 5 are used, it costs no points" in anna.get(task).text
    assert "5 of 5 left" in anna.get(f"/courses/{school.course}").text
    attempt = school.judge("anna", grade=verdict_of(points=80.0))
    page = anna.get(f"/courses/{school.course}").text
    assert "3 of 5 left" in page
    assert "2 late days used" in page
    assert "2 days late, 2 late days used" in anna.get(f"/attempts/{attempt}").text
    ines.post(late, data={"late_days_total": "", "late_days_per_task": ""})
    assert "Late days" not in anna.get(task).text
    assert "64 of 100" in anna.get(f"/attempts/{attempt}").text
    assert (
        "whole numbers"
        in ines.get(ines.post(late, data={"late_days_total": "many"}).headers["location"]).text
    )


def test_an_archived_course_is_read_and_leaves_the_current_ones(school: School) -> None:
    attempt = school.judge("anna")
    ines, anna, at = school.client("ines"), school.client("anna"), f"/courses/{school.course}"
    asked = ines.post(f"{at}/archive")
    assert "can be read only" in asked.text
    assert "archived course" not in anna.get("/").text
    ines.post(f"{at}/archive", data={"confirmed": "yes"})
    home = anna.get("/").text
    assert "1 archived course" in home
    assert "No current course." in home
    for address in (at, f"{at}/tasks/{school.task}", f"/attempts/{attempt}"):
        assert anna.get(address).status_code == 200
    assert "This course is archived" in anna.get(at).text
    refused = anna.post(f"{at}/tasks/{school.task}/submit", data={"text": "print(1)\n"})
    assert (refused.status_code, "The course is archived" in refused.text) == (403, True)
    program = school.program(school.token("anna"))
    body = {"name": "t", "files": [{"path": "train.py", "text": "print(1)\n"}]}
    answer = program.post(f"/api/v1/course-tasks/{school.task}/submissions", json=body)
    assert (answer.status_code, answer.json()["error"]["kind"]) == (403, "course_archived")
    changed = ines.post(f"{at}/words", data={"title": "Other", "about": "", "name": "ddp"})
    assert (changed.status_code, "Take it out of the archive first" in changed.text) == (400, True)
    assert ines.get(f"{at}/gradebook").status_code == 200
    assert "Take it out of the archive" in ines.get(f"{at}/settings").text
    ines.post(f"{at}/restore")
    assert "No current course." not in anna.get("/").text
    assert progress(school.store, school.course, school.people["anna"])[0].refusal is None


def test_an_archived_course_is_deleted_by_its_name(school: School) -> None:
    attempt = school.judge("anna", files={"report.html": b"<p>hers</p>"})
    school.judge("anna", task=school.tasks[TASKS[1]])
    issued = certificates.issue(school.store, school.course, school.people["anna"])
    assert isinstance(issued, certificates.CertificateFacts)
    ada, ines = school.client("ada"), school.client("ines")
    delete = f"/admin/courses/{school.course}/delete"
    assert ines.get(delete).status_code == 403
    assert "Only an archived course can be deleted" in ada.get(delete).text
    assert ada.post(delete, data={"confirm": "ddp"}).status_code == 422
    ada.post(f"/courses/{school.course}/archive", data={"confirmed": "yes"})
    page = ada.get(delete).text
    assert "2, with 2 attempts" in page
    assert "1 certificate" in page
    assert "Type ddp to confirm." in ada.post(delete, data={"confirm": "DDP"}).text
    assert ada.post(delete, data={"confirm": "ddp"}).headers["location"] == "/admin/courses"
    assert ines.get(f"/courses/{school.course}").status_code == 404
    assert school.client("anna").get(f"/attempts/{attempt}").status_code == 404
    verified = school.client().get(f"/certificates/{issued.public_id}")
    assert (verified.status_code, "Distributed training" in verified.text) == (200, True)
    assert f"/courses/{school.course}/settings" not in ada.get("/admin/courses").text
    answer = submissions.submit(school.store, school.people["anna"], school.task, script())
    assert not isinstance(answer, submissions.Receipt)
