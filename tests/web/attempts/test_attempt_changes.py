"""What changed since one's last attempt: on the page and through the API, to whom it is told and when."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from grader.catalog.tasks.task_folders import load_task
from grader.model.grade import Verdict
from grader.model.submission import SourceFile, Submission
from grader.report.audience import Audience
from grader.report.html.attempt_page import to_html
from grader.report.json_report import to_json
from grader.store.attempts import attempt_endings, submissions
from grader.store.attempts.attempts import AttemptFilter, attempts
from grader.store.attempts.submissions import Receipt
from grader.store.courses import courses
from grader.store.courses.courses import TaskTerms
from grader.store.grading import regrades, reviews
from grader.store.grading.grades import new_grade
from grader.store.queue import claims
from tests.report import factory
from tests.store.campus import verdict_of
from tests.web.conftest import TASKS, School
from tests.web.grades import graded

HEADING = "Since your last attempt"


def judge(school: School, name: str, text: str, *, login: str = "anna", task: int | None = None) -> int:
    attempt = getattr(factory, name)()
    grade = new_grade(attempt.grade, to_json(attempt.grade, audience=Audience.STAFF))
    return school.judge(login, text, grade, task=task)


def told(school: School, login: str, attempt: int, **params: Any) -> Any:
    answer = school.program(school.token(login)).get(f"/api/v1/attempts/{attempt}/changes", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


def codes(found: list[dict[str, Any]]) -> list[str]:
    return [one["code"] for one in found]


@pytest.fixture
def two(school: School) -> tuple[int, int]:
    """An attempt that was rejected and the accepted one after it; one at another task and one of ben's in between."""
    first = judge(school, "rejected", "import os\nshuffle = True\n")
    judge(school, "rejected", "print(1)\n", task=school.tasks[TASKS[1]])
    judge(school, "rejected", "print('bens')\n", login="ben")
    return first, judge(school, "accepted", "import os\nsampler = '<b>'\n")


def test_the_page_says_what_went_what_came_and_what_was_written(school: School, two: tuple[int, int]) -> None:
    first, second = two
    text = school.client("anna").get(f"/attempts/{second}").text
    assert "<strong>Your 2nd attempt</strong>" in text, "another task's and another learner's are not counted"
    assert f"<strong>Attempt {second}</strong>" in school.client("ines").get(f"/attempts/{second}").text
    section = text[text.index(HEADING) : text.index("</section>", text.index(HEADING))]
    for words in (
        f'<a href="/attempts/{first}">Your 1st attempt</a>',
        "Not accepted yet",
        "45 of 100",
        "100 of 100",
        "DATA001",
        "<del>shuffle = True</del>",
        "<ins>sampler = &#39;&lt;b&gt;&#39;</ins>",
    ):
        assert words in section, words
    assert re.search(r"Since your last attempt: [\d.]+ → [\d.]+ points; \d mended", text)
    assert "bens" not in section
    staffs = school.client("ines").get(f"/attempts/{second}").text
    assert "Since the attempt before" in staffs
    assert HEADING not in school.client("anna").get(f"/attempts/{first}").text, "nothing was before it"


def test_a_page_with_a_report_is_well_formed_and_leads_to_its_lines(school: School) -> None:
    judge(school, "accepted", "import os\n")
    attempt = factory.rejected()
    grade = new_grade(attempt.grade, to_json(attempt.grade, audience=Audience.STAFF))
    report = {"report.html": to_html(attempt, factory.PAGES).encode()}
    number = school.judge("anna", factory.SOURCE, grade, files=report)
    text = school.client("anna").get(f"/attempts/{number}").text
    assert '<a class="mono" href="#line-0-23">train.py:23</a>' in text
    for tag in ("section", "details", "ol", "li", "ul", "figure"):
        assert text.count(f"<{tag}>") + text.count(f"<{tag} ") == text.count(f"</{tag}>"), tag


def test_where_nothing_changed_the_section_is_folded(school: School) -> None:
    judge(school, "rejected", "import os\n")
    text = "import os\n\n"
    again = judge(school, "rejected", text)
    same = judge(school, "rejected", text.replace("\n", "\r\n"))
    anna = school.client("anna")
    assert f"{HEADING}: nothing changed" not in anna.get(f"/attempts/{again}").text
    folded = anna.get(f"/attempts/{same}").text
    assert f"{HEADING}: nothing changed" in folded
    assert "The same text was handed in." in folded
    assert "<details open>" not in folded


def test_a_program_reads_the_same(school: School, two: tuple[int, int]) -> None:
    first, second = two
    changes = told(school, "anna", second)
    assert (changes["attempt_id"], changes["since"]) == (second, first)
    assert changes["outcome_before"] == "Not accepted yet: 45 of 100"
    assert changes["outcome"] == "Accepted: 100 of 100"
    assert "DATA001" in codes(changes["went"])
    (file,) = changes["files"]
    assert (file["kind"], file["old_path"]) == ("changed", "train.py")
    assert "-shuffle = True\n+sampler = '<b>'\n" in file["diff"]
    backwards = told(school, "anna", first, since=second)
    assert codes(backwards["came"]) == codes(changes["went"])
    alone = told(school, "anna", first)
    assert (alone["since"], alone["went"], alone["files"]) == (None, [], [])


def test_suspicions_are_told_to_staff_alone(school: School, two: tuple[int, int]) -> None:
    _, second = two
    assert "TRUST002" in codes(told(school, "ines", second)["went"])
    assert "TRUST" not in json.dumps(told(school, "anna", second))
    assert "TRUST" not in school.client("anna").get(f"/attempts/{second}").text


def test_nobody_compares_with_what_is_not_theirs_or_of_another_task(
    school: School, two: tuple[int, int]
) -> None:
    _, second = two
    bens = judge(school, "rejected", "print('bens own')\n", login="ben")
    other_task = judge(school, "rejected", "print(2)\n", task=school.tasks[TASKS[1]])
    waiting = school.hand_in("anna")
    anna = school.program(school.token("anna"))
    told_of = set()
    for number in (bens, other_task, waiting, second, 987_654):
        answer = anna.get(f"/api/v1/attempts/{second}/changes", params={"since": number})
        assert answer.status_code == 409, number
        told_of.add(answer.text.replace(str(number), ""))
    assert len(told_of) == 1, "what is there and not theirs is told from what is not there"
    answer = anna.get(f"/api/v1/attempts/{waiting}/changes")
    assert (answer.status_code, "not judged" in answer.text) == (409, True)
    ben = school.program(school.token("ben"))
    assert ben.get(f"/api/v1/attempts/{second}/changes").status_code == 404


def test_what_is_hidden_until_due_is_hidden_here_too(school: School, two: tuple[int, int]) -> None:
    _, second = two
    task = load_task(TASKS[0])
    due = datetime.now(UTC) + timedelta(days=1)
    terms = TaskTerms(task.title, task.version, due_at=due, hidden_until_due=True)
    courses.set_task(school.store, school.course, task.name, "cpu", terms)
    assert HEADING not in school.client("anna").get(f"/attempts/{second}").text
    answer = school.program(school.token("anna")).get(f"/api/v1/attempts/{second}/changes")
    assert (answer.status_code, answer.json()["error"]["kind"]) == (403, "hidden_until_due")
    assert "DATA001" in codes(told(school, "ines", second)["went"])


def test_points_are_those_that_count(school: School, two: tuple[int, int]) -> None:
    first, second = two
    reviews.override(school.store, first, Verdict.REJECTED, 50, "half", actor_id=school.people["ines"])
    changes = told(school, "anna", second)
    assert changes["outcome_before"] == "Not accepted by an instructor: 50 of 100 (judged 45)"


def test_an_attempt_that_is_held_is_told_as_held_and_not_as_0_points(school: School) -> None:
    school.judge("anna", "import os\n", graded(Verdict.HELD))
    school.judge("anna", "import sys\n", graded(Verdict.REJECTED))
    last = school.judge("anna", "import re\n", graded(Verdict.HELD))
    anna = school.client("anna")
    held = "held (judged 40, not counted)"
    assert f"{HEADING}: {held} → 40 points; the same findings" in anna.get(f"/attempts/{last - 1}").text
    assert f"{HEADING}: 40 points → {held}; the same findings" in anna.get(f"/attempts/{last}").text
    once_more = school.judge("anna", "import ast\n", graded(Verdict.HELD))
    assert f"{HEADING}: the same findings" in anna.get(f"/attempts/{once_more}").text


def test_a_regrade_is_compared_as_the_attempt_that_it_judges_again(
    school: School, two: tuple[int, int]
) -> None:
    first, second = two
    batch = regrades.queue_new_runs(school.store, [second], actor_id=school.people["ines"])
    lease = claims.claim(school.store, "w1", ("cpu",))
    assert isinstance(lease, claims.Claimed)
    attempt = factory.rejected()
    grade = new_grade(attempt.grade, to_json(attempt.grade, audience=Audience.STAFF))
    attempt_endings.finish(school.store, lease.attempt_id, lease.lease_token, grade)
    again = attempts(school.store, AttemptFilter(), limit=1)[0].id
    anna = school.program(school.token("anna"))
    refused = anna.get(f"/api/v1/attempts/{second}/changes", params={"since": again})
    assert refused.status_code == 409, "nobody is told of it before it counts"
    regrades.apply(school.store, batch, actor_id=school.people["ines"])
    assert told(school, "anna", again)["since"] == first
    assert told(school, "anna", second)["since"] == first
    third = judge(school, "accepted", "print(3)\n")
    assert told(school, "anna", third)["since"] == second, "a regrade is no attempt of its own"
    assert "DATA001" in codes(told(school, "anna", again, since=second)["came"])


def test_a_grade_that_cannot_be_read_is_no_reason_to_show_nothing(school: School) -> None:
    judge(school, "rejected", "print(1)\n")
    unreadable = school.judge("anna", grade=verdict_of(Verdict.REJECTED, 12))
    assert told(school, "anna", unreadable)["since"] is None
    assert school.client("anna").get(f"/attempts/{unreadable}").status_code == 200


def test_several_files_are_told_apart(school: School) -> None:
    grade, number = factory.accepted().grade, 0
    for files in (
        {"train.py": "import load\n", "load.py": "a = 1\nb = 2\n"},
        {"train.py": "import data\n", "data.py": "a = 1\nb = 2\n", "new.py": "c = 3\n"},
    ):
        submission = Submission("several", tuple(SourceFile(path, files[path]) for path in sorted(files)))
        receipt = submissions.submit(school.store, school.people["anna"], school.task, submission)
        assert isinstance(receipt, Receipt)
        lease = claims.claim(school.store, "w1", ("cpu",))
        assert isinstance(lease, claims.Claimed)
        document = to_json(grade, audience=Audience.STAFF)
        attempt_endings.finish(school.store, lease.attempt_id, lease.lease_token, new_grade(grade, document))
        number = receipt.attempt_id
    kinds = {one["path"]: one["kind"] for one in told(school, "anna", number)["files"]}
    assert kinds == {"data.py": "renamed", "new.py": "added", "train.py": "changed"}
    text = school.client("anna").get(f"/attempts/{number}").text
    assert 'renamed from <span class="mono">load.py</span>' in text
