"""An exam from its start page to its release: what learners see when, what staff sees, by pages, API and command."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import update

from grader import cli
from grader.catalog.tasks.task_folders import load_task
from grader.settings import settings
from grader.store.courses import courses
from grader.store.courses.courses import TaskTerms
from grader.store.tables import ExamSittingRow
from tests.store.campus import verdict_of
from tests.web.conftest import TASKS, School, Served

NOW = datetime.now(UTC)


@pytest.fixture
def exam(school: School) -> School:
    """The school with its first task as an exam that is on."""
    task = load_task(TASKS[0])
    terms = TaskTerms(
        task.title,
        task.version,
        opens_at=NOW - timedelta(hours=1),
        due_at=NOW + timedelta(hours=5),
        exam_minutes=90,
    )
    courses.set_task(school.store, school.course, TASKS[0], "cpu", terms)
    return school


def test_what_it_asks_is_shown_to_who_has_begun(exam: School) -> None:
    anna, page = exam.client("anna"), f"/courses/{exam.course}/tasks/{exam.task}"
    summary = load_task(TASKS[0]).summary
    text = anna.get(page).text
    assert "90 minutes" in text
    assert 'id="statement"' not in text
    assert summary not in anna.get(f"/courses/{exam.course}").text
    for address in (f"{page}/skeleton", f"{page}/notebook"):
        assert anna.get(address).status_code == 404
    refused = anna.post(f"{page}/submit", data={"text": "print(1)\n"})
    assert (refused.status_code, 'id="statement"' in refused.text) == (409, False)
    asked = anna.post(f"{page}/begin")
    assert "90 minutes run from this moment" in asked.text
    assert 'id="statement"' not in anna.get(page).text, "asking begins nothing"
    anna.post(f"{page}/begin", data={"confirmed": "yes"})
    text = anna.get(page).text
    assert 'id="statement"' in text
    assert "Your time ends" in text
    assert anna.get(f"{page}/skeleton").status_code == 200
    assert 'id="statement"' not in exam.client("ben").get(page).text
    assert 'id="statement"' in exam.client("ines").get(page).text


def test_its_end_is_an_end_and_how_it_went_waits_for_its_release(exam: School) -> None:
    anna, ines = exam.client("anna"), exam.client("ines")
    page, watch = f"/courses/{exam.course}/tasks/{exam.task}", f"/courses/{exam.course}/exams/{exam.task}"
    anna.post(f"{page}/begin", data={"confirmed": "yes"})
    attempt = exam.judge("anna", grade=verdict_of(points=77.0))
    assert "told when your instructors release it" in anna.get(f"/attempts/{attempt}").text
    assert "told when it is released" in anna.get(f"/courses/{exam.course}").text
    seen = ines.get(watch).text
    assert "1 of 3" in seen
    assert "not yet" in seen
    assert (
        "Release it while somebody is at it?" in ines.post(f"{watch}/release", data={"released": "yes"}).text
    )
    with exam.store.write() as connection:
        connection.execute(update(ExamSittingRow).values(begun_at=NOW - timedelta(hours=2)))
    over = anna.post(f"{page}/submit", data={"text": "print(1)\n"})
    assert (over.status_code, "Your time in this exam is over" in over.text) == (409, True)
    assert "over" in ines.get(watch).text
    ines.post(f"{watch}/release", data={"released": "yes"})
    assert "77 of 100" in anna.get(f"/attempts/{attempt}").text
    assert 'id="statement"' in exam.client("ben").get(page).text, "it is no secret any more"
    ines.post(f"{watch}/release", data={"released": ""})
    assert "77 of 100" not in anna.get(f"/attempts/{attempt}").text


def test_what_is_on_is_changed_only_by_who_means_it(exam: School) -> None:
    ines, terms = exam.client("ines"), f"/courses/{exam.course}/settings/{exam.task}"
    exam.client("anna").post(f"/courses/{exam.course}/tasks/{exam.task}/begin", data={"confirmed": "yes"})
    sent = {
        "title": "Exam",
        "weight": "1",
        "due_at": (NOW + timedelta(hours=3)).strftime("%Y-%m-%dT%H:%M"),
        "late_policy": "closed",
        "exam_minutes": "100",
    }
    for address, form in ((terms, sent), (f"{terms}/withdraw", {})):
        asked = ines.post(address, data=form)
        assert "1 learner has begun it" in asked.text
    there = courses.course_task(exam.store, exam.task)
    assert there is not None
    assert (there.terms.exam_minutes, there.withdrawn) == (90, False)
    assert ines.post(terms, data={**sent, "confirmed": "yes"}).status_code == 303
    there = courses.course_task(exam.store, exam.task)
    assert there is not None
    assert there.terms.exam_minutes == 100
    for wrong in ({"due_at": ""}, {"late_policy": "accepted"}, {"exam_minutes": "0"}):
        assert ines.post(terms, data={**sent, **wrong}).status_code == 422


def test_it_is_begun_from_a_terminal(
    served: Served, exam: School, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GRADER_URL", served.url)
    monkeypatch.setenv("GRADER_TOKEN", exam.token("anna"))
    settings.cache_clear()
    assert cli.main(["begin", TASKS[0]]) == 2
    assert "say --yes to begin it" in capsys.readouterr().err
    program = exam.program(exam.token("anna"))
    address = f"/api/v1/course-tasks/{exam.task}/exam"
    assert program.get(address).json()["begun_at"] is None
    assert cli.main(["begin", TASKS[0], "--yes"]) == 0
    assert "your time ends" in capsys.readouterr().out
    begun = program.get(address).json()
    assert begun["minutes"] == 90
    assert program.post(address).json() == begun
    other = f"/api/v1/course-tasks/{exam.tasks[TASKS[1]]}/exam"
    assert (program.get(other).json(), program.post(other).status_code) == (None, 409)
    assert cli.main(["begin", TASKS[1], "--yes"]) == 2
    assert "is no exam" in capsys.readouterr().err
