"""A task that a course does without: gone where nobody tried it, else out of sight while its grades are kept."""

from __future__ import annotations

import pytest

from grader.model.grade import Verdict
from grader.store import events
from grader.store.attempts import submissions
from grader.store.attempts.limits import Limit, Refusal
from grader.store.courses import courses
from grader.store.courses.task_withdrawal import Withdrawal, removed_tasks, withdraw_task
from grader.store.grading import certificates
from grader.store.grading.gradebook import gradebook
from grader.web.staff.gradebook_table import total_of
from tests.store.campus import script, verdict_of
from tests.web.conftest import School


def place(school: School, task: int) -> str:
    return f"/courses/{school.course}/settings/{task}"


def title(school: School, name: str) -> str:
    return next(one.terms.title for one in courses.tasks_of(school.store, school.course) if one.task == name)


def told(school: School) -> list[tuple[str, int | None]]:
    found = events.audit_of(school.store, f"course:{school.course}")
    return [
        (one.kind, one.actor_id) for one in found if one.kind.startswith("task_") and one.kind != "task_set"
    ]


def test_a_task_that_nobody_tried_goes_away_and_can_be_added_anew(school: School) -> None:
    ines, task, name = school.client("ines"), school.tasks["ddp-fashion"], title(school, "ddp-fashion")
    assert "Remove it" in ines.get(place(school, task)).text
    assert ines.post(f"{place(school, task)}/withdraw").status_code == 303
    assert [one.task for one in courses.tasks_of(school.store, school.course)] == ["ddp-toy"]
    assert ines.get(place(school, task)).status_code == 404
    settings = ines.get(f"/courses/{school.course}/settings").text
    assert 'value="ddp-fashion/cpu"' in settings
    assert "Withdrawn" not in settings
    assert name not in school.client("anna").get(f"/courses/{school.course}").text
    assert told(school) == [("task_removed", school.people["ines"])]
    assert removed_tasks(school.store, school.course) == {("ddp-fashion", "cpu")}
    ines.post(f"/courses/{school.course}/settings/add", data={"task": "ddp-fashion/cpu"})
    *_, added = courses.tasks_of(school.store, school.course)
    ines.post(f"{place(school, added.id)}/publish")
    assert name in school.client("anna").get(f"/courses/{school.course}").text


def test_a_task_with_attempts_is_hidden_from_learners_and_keeps_its_grades(school: School) -> None:
    ines, anna, task = school.client("ines"), school.client("anna"), school.task
    attempt = school.judge("anna", grade=verdict_of(Verdict.REJECTED, 40.0))
    course, name = f"/courses/{school.course}", title(school, "ddp-toy")
    assert "Withdraw it" in ines.get(place(school, task)).text
    ines.post(f"{place(school, task)}/withdraw")

    assert name not in anna.get(course).text
    for way in ("", "/skeleton"):
        assert anna.get(f"{course}/tasks/{task}{way}").status_code == 404
    api = school.program(school.token("anna"))
    listed = api.get(f"/api/v1/courses/{school.course}/tasks").json()
    assert [one["task"] for one in listed] == ["ddp-fashion"]
    body = {"files": [{"path": "train.py", "text": "print(1)\n"}]}
    assert api.post(f"/api/v1/tasks/{task}/submissions", json=body).status_code in (403, 404)
    for login in ("anna", "ines"):
        answer = submissions.submit(school.store, school.people[login], task, script())
        assert answer == Refusal(Limit.NOT_ENROLLED)
    # One's own work stays one's own, without a way to a page that is no more.
    own = anna.get(f"/attempts/{attempt}")
    assert own.status_code == 200
    assert f"/tasks/{task}" not in own.text

    assert f'href="/attempts/{attempt}"' in ines.get(f"{course}/gradebook").text
    book = gradebook(school.store, school.course)
    assert [one.withdrawn for one in book.tasks] == [True, False]
    (row,) = (one for one in book.rows if one.login == "anna")
    assert row.cells[task].points == 40.0
    school.judge("anna", grade=verdict_of(), task=school.tasks["ddp-fashion"])
    (row,) = (one for one in gradebook(school.store, school.course).rows if one.login == "anna")
    assert total_of(row, book.tasks) == 1.0, "what was withdrawn counts neither way"
    assert certificates.earned(school.store, school.course) == (school.people["anna"],)

    settings = ines.get(f"{course}/settings").text
    assert f"{place(school, task)}/set-again" in settings
    ines.post(f"{place(school, task)}/set-again")
    assert name in anna.get(course).text
    assert total_of(row, courses.tasks_of(school.store, school.course)) == pytest.approx(0.7)
    assert [kind for kind, _ in told(school)] == ["task_set_again", "task_withdrawn"]


def test_tasks_are_moved_past_each_other_as_they_are_seen(school: School) -> None:
    ines = school.client("ines")
    school.judge("anna")
    third = courses.set_task(
        school.store, school.course, "fsdp", "cpu", courses.TaskTerms("Sharded", "f" * 64)
    )
    ines.post(f"{place(school, school.tasks['ddp-fashion'])}/withdraw")
    assert withdraw_task(school.store, school.course, school.task, actor_id=None) is Withdrawal.WITHDRAWN
    fourth = courses.set_task(
        school.store, school.course, "large-batch", "cpu", courses.TaskTerms("Large", "f" * 64)
    )
    ines.post(f"/courses/{school.course}/settings/order", data={"task": str(fourth), "by": "up"})
    seen = [one.id for one in courses.tasks_of(school.store, school.course) if not one.withdrawn]
    assert seen == [fourth, third]


def test_only_a_course_s_own_staff_takes_its_tasks_out(school: School) -> None:
    for login, status in (("anna", 404), ("otto", 404)):
        for way in ("withdraw", "set-again"):
            assert school.client(login).post(f"{place(school, school.task)}/{way}").status_code == status
    forged = school.client("ines")
    del forged.headers["X-CSRF-Token"]
    assert forged.post(f"{place(school, school.task)}/withdraw").status_code == 403
    other = f"/courses/{school.course}/settings/{school.other_task}/withdraw"
    assert school.client("ines").post(other).status_code == 404
    assert not any(one.withdrawn for one in courses.tasks_of(school.store, school.course))
    assert withdraw_task(school.store, school.course, 987_654, actor_id=None) is Withdrawal.UNKNOWN
