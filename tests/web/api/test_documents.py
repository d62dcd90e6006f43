"""What learners are told of attempts through the API: their own, when it is time, and nothing that is for staff."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from grader.catalog.tasks.task_folders import load_task
from grader.store.attempts import attempt_endings
from grader.store.attempts.attempt_endings import StoredFile
from grader.store.attempts.attempts import AttemptFilter, attempts
from grader.store.courses import courses
from grader.store.courses.courses import TaskTerms
from grader.store.events import add_live_events
from grader.store.grading import regrades
from grader.store.queue import claims
from tests.web.conftest import TASKS, School
from tests.web.grades import FOR_STAFF, graded

ANNAS = "annas-name-for-it"


def test_the_same_files_answer_at_once_and_tell_nothing_of_whose_they_were(school: School) -> None:
    text = "print('the very same')\n"
    report = f'<style></style><div class="page"><p class="mono">{ANNAS}</p></div></body>'.encode()
    first = school.program(school.token("anna")).post(
        f"/api/v1/course-tasks/{school.task}/submissions",
        json={"name": ANNAS, "files": [{"path": "train.py", "text": text}]},
    )
    claimed = claims.claim(school.store, "w1", ("cpu",))
    assert isinstance(claimed, claims.Claimed)
    left = [StoredFile("report.html", school.files.put(report), len(report))]
    attempt_endings.finish(school.store, claimed.attempt_id, claimed.lease_token, graded(name=ANNAS), left)
    ben = school.program(school.token("ben"))
    answer = ben.post(
        f"/api/v1/course-tasks/{school.task}/submissions",
        json={"name": "bens", "files": [{"path": "train.py", "text": text}]},
    ).json()
    assert (answer["state"], answer["place"]) == ("judged", None)
    for more in ("", "/grade", "/report", "/events"):
        told = ben.get(answer["url"] + more)
        assert told.status_code == 200, more
        assert ANNAS not in told.text, more
        assert "cached_from" not in told.text
    assert ben.get(answer["url"] + "/grade").json()["submission"] == "bens"
    assert ben.get(first.json()["url"]).status_code == 404


def test_a_grade_is_whole_for_staff_and_without_suspicions_for_its_owner(school: School) -> None:
    attempt = school.judge("anna", grade=graded())
    address = f"/api/v1/attempts/{attempt}/grade"
    own, staffs = (school.program(school.token(login)).get(address) for login in ("anna", "ines"))
    assert FOR_STAFF in staffs.text
    assert FOR_STAFF not in own.text
    assert own.json()["points"] == staffs.json()["points"] == 40.0
    assert [one["code"] for one in own.json()["findings"]] == ["DATA002"]


def test_feedback_that_is_hidden_until_due_is_hidden_on_every_way_to_it(school: School) -> None:
    task = load_task(TASKS[0])
    due = datetime.now(UTC) + timedelta(days=1)
    terms = TaskTerms(task.title, task.version, due_at=due, hidden_until_due=True)
    courses.set_task(school.store, school.course, task.name, "cpu", terms)
    attempt = school.judge("anna", grade=graded(), files={"report.html": b"<p>", "report-staff.html": b"<p>"})
    anna, ines = (school.program(school.token(login)) for login in ("anna", "ines"))
    shown = anna.get(f"/api/v1/attempts/{attempt}").json()
    assert (shown["state"], shown["verdict"], shown["points"]) == ("judged", None, None)
    assert datetime.fromisoformat(shown["hidden_until"]) == pytest.approx(due, abs=timedelta(seconds=1))
    listed = anna.get("/api/v1/attempts").json()
    assert [one["verdict"] for one in listed] == [None]
    for way in ("grade", "report"):
        answer = anna.get(f"/api/v1/attempts/{attempt}/{way}")
        assert (answer.status_code, answer.json()["error"]["kind"]) == (403, "hidden_until_due")
        assert ines.get(f"/api/v1/attempts/{attempt}/{way}").status_code == 200
    judged = anna.get(f"/api/v1/attempts/{attempt}/events").json()[-1]
    assert (judged["kind"], judged["data"]) == ("judged", {})
    assert ines.get(f"/api/v1/attempts/{attempt}").json()["verdict"] == "rejected"


def test_a_regrade_is_not_there_for_its_owner_until_it_counts(school: School) -> None:
    attempt = school.judge("anna", grade=graded())
    batch = regrades.queue_new_runs(school.store, [attempt], actor_id=school.people["ines"])
    again = next(one.id for one in attempts(school.store, AttemptFilter()) if one.id != attempt)
    anna = school.program(school.token("anna"))
    assert anna.get(f"/api/v1/attempts/{again}").status_code == 404
    assert [one["id"] for one in anna.get("/api/v1/attempts").json()] == [attempt]
    ines = school.program(school.token("ines"))
    assert ines.get(f"/api/v1/attempts/{again}").status_code == 200
    claimed = claims.claim(school.store, "w1", ("cpu",))
    assert isinstance(claimed, claims.Claimed)
    attempt_endings.finish(school.store, again, claimed.lease_token, graded())
    assert anna.get(f"/api/v1/attempts/{again}").status_code == 404
    regrades.apply(school.store, batch, actor_id=school.people["ines"])
    assert anna.get(f"/api/v1/attempts/{again}").status_code == 200


def test_events_are_read_from_where_one_was(school: School) -> None:
    attempt = school.hand_in("anna")
    claimed = claims.claim(school.store, "w1", ("cpu",))
    assert isinstance(claimed, claims.Claimed)
    assert add_live_events(
        school.store, attempt, claimed.lease_token, [("phase", {"phase": "run", "elapsed_s": 0.1})]
    )
    anna = school.program(school.token("anna"))
    events = anna.get(f"/api/v1/attempts/{attempt}/events").json()
    assert [one["seq"] for one in events] == list(range(1, len(events) + 1))
    assert events[-1]["data"]["phase"] == "run"
    rest = anna.get(f"/api/v1/attempts/{attempt}/events", params={"after": len(events) - 1}).json()
    assert rest == events[-1:]
    assert "w1" not in anna.get(f"/api/v1/attempts/{attempt}/events").text
