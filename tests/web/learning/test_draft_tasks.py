"""A task that is added to a course is a draft: no learner sees it and nothing counts with it until it is published."""

from __future__ import annotations

import pytest

from grader.store.attempts import submissions
from grader.store.attempts.submissions import Receipt
from grader.store.courses import courses
from grader.store.courses.task_withdrawal import withdraw_task
from grader.store.tables.api_token import Scope
from tests.store.campus import script, verdict_of
from tests.web.conftest import School


@pytest.fixture
def draft(school: School) -> int:
    """A task that Ines has just added."""
    withdraw_task(school.store, school.course, school.tasks["ddp-fashion"], actor_id=None)
    answer = school.client("ines").post(
        f"/courses/{school.course}/settings/add", data={"task": "ddp-fashion/cpu"}
    )
    return int(answer.headers["location"].rpartition("/")[2])


def title(school: School, task: int) -> str:
    return next(one.terms.title for one in courses.tasks_of(school.store, school.course) if one.id == task)


def test_no_learner_sees_a_draft_by_any_way(school: School, draft: int) -> None:
    anna, name = school.client("anna"), title(school, draft)
    assert name not in anna.get(f"/courses/{school.course}").text
    assert name not in anna.get("/").text
    page = f"/courses/{school.course}/tasks/{draft}"
    for address in (page, f"{page}/skeleton", f"{page}/notebook"):
        assert anna.get(address).status_code == 404
    assert anna.post(f"{page}/check", files={"files": ("train.py", b"pass\n")}).status_code == 404
    assert not isinstance(submissions.submit(school.store, school.people["anna"], draft, script()), Receipt)
    listed = school.program(school.token("anna", Scope.READ)).get(f"/api/v1/courses/{school.course}/tasks")
    assert draft not in [one["id"] for one in listed.json()]


def test_instructors_see_it_marked_and_try_it_out(school: School, draft: int) -> None:
    ines = school.client("ines")
    assert "learners do not see it" in ines.get(f"/courses/{school.course}").text
    assert "Draft: learners do not see it" in ines.get(f"/courses/{school.course}/settings/{draft}").text
    assert ines.get(f"/courses/{school.course}/tasks/{draft}").status_code == 200
    assert isinstance(submissions.submit(school.store, school.people["ines"], draft, script()), Receipt)
    assert school.client("ada").get(f"/courses/{school.course}/tasks/{draft}").status_code == 200


def test_a_draft_counts_in_no_total(school: School, draft: int) -> None:
    school.judge("anna", grade=verdict_of())
    lines = school.client("ines").get(f"/courses/{school.course}/exports/gradebook.csv").text.splitlines()
    anna = next(line for line in lines if line.startswith("anna")).split(",")
    assert anna[2:4] == ["100", "1"], "all points, all required tasks"


def test_publishing_shows_it(school: School, draft: int) -> None:
    ines, anna = school.client("ines"), school.client("anna")
    assert anna.post(f"/courses/{school.course}/settings/{draft}/publish").status_code == 404
    said = ines.post(f"/courses/{school.course}/settings/{draft}/publish", follow_redirects=True).text
    assert "is published: learners see it now" in said
    assert "Draft:" not in said
    assert title(school, draft) in anna.get(f"/courses/{school.course}").text
    assert anna.get(f"/courses/{school.course}/tasks/{draft}").status_code == 200
    assert isinstance(submissions.submit(school.store, school.people["anna"], draft, script()), Receipt)
    again = ines.post(f"/courses/{school.course}/settings/{draft}/publish", follow_redirects=True)
    assert "was published before" in again.text
