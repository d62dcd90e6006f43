"""An attempt that is over: its report in the page, what staff added, and which files may be had by whom."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

import pytest
from fastapi import HTTPException

from grader.model.grade import ItemState, Verdict
from grader.model.submission import SourceFile, Submission
from grader.report.audience import Audience
from grader.report.html.attempt_page import to_html
from grader.report.json_report import to_json
from grader.store.attempts import attempt_endings, submissions
from grader.store.attempts.submissions import Receipt
from grader.store.grading import regrades, reviews
from grader.store.grading.grades import new_grade
from grader.store.queue import claims
from grader.web import stored_report
from tests.report import factory
from tests.store.campus import verdict_of
from tests.web.conftest import School

NAMES = ("accepted", "rejected", "deadlocked", "crashed", "does_not_parse", "hostile")


@cache
def files(name: str = "rejected") -> dict[str, bytes]:
    """What a worker leaves; drawn once, because plots take their time."""
    attempt = getattr(factory, name)()
    return {
        "report.html": to_html(attempt, factory.PAGES).encode(),
        "report-staff.html": to_html(attempt, factory.PAGES, Audience.STAFF).encode(),
        "grade.json": to_json(attempt.grade, audience=Audience.STAFF).encode(),
        "grade-learner.json": to_json(attempt.grade, audience=Audience.LEARNER).encode(),
        "evidence.tar.gz": b"evidence",
    }


def show(school: School, name: str = "rejected") -> int:
    attempt = getattr(factory, name)()
    grade = new_grade(attempt.grade, to_json(attempt.grade, audience=Audience.STAFF))
    return school.judge("anna", f"# {name}\n{factory.SOURCE}", grade, files=files(name))


@pytest.mark.parametrize("name", NAMES)
def test_the_page_holds_the_very_report(school: School, name: str) -> None:
    number = show(school, name)
    answer = school.client("anna").get(f"/attempts/{number}")
    report = stored_report.read(files(name)["report.html"])
    assert report is not None
    assert str(report.body) in answer.text
    assert answer.text.count("<main") == answer.text.count("</main>") == 1
    for tag in ("div", "section", "header", "footer", "body", "html", "style"):
        assert len(re.findall(f"<{tag}[ >]", answer.text)) == answer.text.count(f"</{tag}>"), tag
    policy = answer.headers["content-security-policy"]
    assert "script-src 'self';" in policy
    assert "frame-ancestors 'none'" in policy


def test_the_report_alone_runs_nothing(school: School) -> None:
    number = show(school, "hostile")
    alone = school.client("anna").get(f"/attempts/{number}/report")
    assert alone.content == files("hostile")["report.html"]
    assert "default-src 'none'" in alone.headers["content-security-policy"]
    assert "script-src" not in alone.headers["content-security-policy"]


def test_staff_read_theirs_and_learners_do_not(school: School) -> None:
    number = show(school)
    assert files()["report-staff.html"] != files()["report.html"], "this would mean nothing otherwise"
    assert school.client("ines").get(f"/attempts/{number}/report").content == files()["report-staff.html"]
    assert school.client("anna").get(f"/attempts/{number}/report").content == files()["report.html"]
    for login, name, status in (
        ("anna", "report.html", 200),
        ("anna", "grade-learner.json", 200),
        ("anna", "grade.json", 404),
        ("anna", "report-staff.html", 404),
        ("anna", "evidence.tar.gz", 404),
        ("anna", "..%2f..%2fgrader.db", 404),
        ("ines", "grade.json", 200),
        ("ines", "evidence.tar.gz", 200),
        ("ben", "report.html", 404),
        ("otto", "report.html", 404),
    ):
        assert school.client(login).get(f"/attempts/{number}/files/{name}").status_code == status, (
            login,
            name,
        )
    assert "evidence.tar.gz" not in school.client("anna").get(f"/attempts/{number}").text
    assert "evidence.tar.gz" in school.client("ines").get(f"/attempts/{number}").text


def test_what_was_handed_in_can_be_had_again_and_is_never_a_page(school: School) -> None:
    number = school.judge("anna", "print('<script>alert(1)</script>')\n")
    answer = school.client("anna").get(f"/attempts/{number}/source")
    assert answer.text == "print('<script>alert(1)</script>')\n"
    assert "attachment" in answer.headers["content-disposition"]
    assert "html" not in answer.headers["content-type"]
    assert school.client("ben").get(f"/attempts/{number}/source").status_code == 404


def test_what_staff_add_is_shown_and_the_judgement_stays(school: School) -> None:
    number = show(school)
    ines = school.people["ines"]
    reviews.comment(school.store, number, "Look <b>here</b>\nfirst", author_id=ines, path="train.py", line=23)
    reviews.override(school.store, number, Verdict.ACCEPTED, 70, "good enough <i>", actor_id=ines)
    text = school.client("anna").get(f"/attempts/{number}").text
    assert "Accepted by an instructor: 70 of 100 (judged rejected, 45)" in text
    assert "As judged: Not accepted yet." in text
    assert text.count("<h1>") == 1
    alone = school.client("anna").get(f"/attempts/{number}/report").text
    assert "Accepted by an instructor: 70 of 100" in alone
    assert "Not accepted yet: 45 of 100</h1>" not in alone
    assert "good enough &lt;i&gt;" in text
    assert "Look &lt;b&gt;here&lt;/b&gt;" in text
    assert 'href="#line-0-23"' in text
    assert 'id="line-0-23"' in text
    assert "Not accepted yet" in text
    reviews.withdraw_override(school.store, number, actor_id=ines)
    assert "by an instructor" not in school.client("anna").get(f"/attempts/{number}").text


def test_what_was_seen_in_part_is_shown_with_the_points_that_it_earned(school: School) -> None:
    grade = factory.rejected().grade
    first, *others = grade.rubric
    partly = replace(first, state=ItemState.NOT_SEEN, points=6.67, earned=4.25)
    grade = replace(grade, rubric=(partly, *others))
    number = school.judge("anna", factory.SOURCE, new_grade(grade, to_json(grade, audience=Audience.STAFF)))
    text = school.client("ines").get(f"/attempts/{number}/review").text
    assert "4.25 of 6.67" in text
    assert text.count("left out") == sum(not item.points for item in grade.rubric)


def test_the_same_files_again_do_not_tell_what_others_called_theirs(school: School) -> None:
    store, text = school.store, "print('the same')\n"
    attempt = factory.rejected()
    grade = new_grade(attempt.grade, to_json(attempt.grade, audience=Audience.STAFF))
    mine = Submission("annas <own> solution", (SourceFile("train.py", text),))
    first = submissions.submit(store, school.people["anna"], school.task, mine)
    assert isinstance(first, Receipt)
    report = files()["report.html"].replace(b"no_sampler", b"annas &lt;own&gt; solution")
    lease = claims.claim(store, "w1", ("cpu",))
    assert isinstance(lease, claims.Claimed)
    told = {"report.html": report, "grade-learner.json": b'{"schema": 1, "submission": "annas solution"}\n'}
    left = [
        attempt_endings.StoredFile(name, school.files.put(data), len(data)) for name, data in told.items()
    ]
    attempt_endings.finish(store, first.attempt_id, lease.lease_token, grade, left)
    second = submissions.submit(
        store, school.people["ben"], school.task, Submission("bens", (SourceFile("train.py", text),))
    )
    assert isinstance(second, Receipt)
    ben, anna = school.client("ben"), school.client("anna")
    for address in ("", "/report", "/files/report.html", "/files/grade-learner.json"):
        assert "solution" in anna.get(f"/attempts/{first.attempt_id}{address}").text
        answer = ben.get(f"/attempts/{second.attempt_id}{address}").text
        assert "bens" in answer
        assert "solution" not in answer
    assert "judged before" in ben.get(f"/attempts/{second.attempt_id}").text


def test_a_report_that_is_gone_leaves_verdict_and_points(school: School) -> None:
    number = show(school)
    for place in (school.service.state_dir / "files").rglob("*"):
        if place.is_file():
            place.unlink()
    page = school.client("anna").get(f"/attempts/{number}")
    assert page.status_code == 200
    assert "cannot be read just now" in page.text
    assert "Not accepted yet" in page.text
    assert school.client("anna").get(f"/attempts/{number}/report").status_code == 503
    without = school.judge("anna", grade=verdict_of(Verdict.REJECTED, 12))
    assert "12" in school.client("anna").get(f"/attempts/{without}").text


def test_a_fault_of_ours_is_told_as_one(school: School) -> None:
    number = school.hand_in("anna")
    lease = claims.claim(school.store, "w1", ("cpu",))
    assert isinstance(lease, claims.Claimed)
    attempt_endings.fail(school.store, number, lease.lease_token, "no space on /var/secret", retry=False)
    text = school.client("anna").get(f"/attempts/{number}").text
    assert "does not count against you" in text
    assert "/var/secret" not in text
    assert "/var/secret" in school.client("ines").get(f"/attempts/{number}").text


def test_an_attempt_that_was_judged_again_leads_to_what_holds_now(school: School) -> None:
    store, first = school.store, show(school)
    batch = regrades.queue_new_runs(store, [first], actor_id=school.people["ines"])
    lease = claims.claim(store, "w1", ("cpu",))
    assert isinstance(lease, claims.Claimed)
    attempt_endings.finish(store, lease.attempt_id, lease.lease_token, verdict_of(Verdict.ACCEPTED, 80))
    anna = school.client("anna")
    task = f"/courses/{school.course}/tasks/{school.task}"
    assert "judged again" not in anna.get(f"/attempts/{first}").text, (
        "nothing is in force before it is applied"
    )
    assert "judged again" not in anna.get(task).text
    regrades.apply(store, batch, actor_id=school.people["ines"])
    assert (
        f'<a href="/attempts/{lease.attempt_id}">that judgement</a> holds now'
        in anna.get(f"/attempts/{first}").text
    )
    for number in (first, lease.attempt_id):
        assert "<strong>Your 1st attempt</strong>" in anna.get(f"/attempts/{number}").text, (
            "the same one, twice judged"
        )
    assert f'from <a href="/attempts/{first}"' in anna.get(f"/attempts/{lease.attempt_id}").text
    assert "judged again" in anna.get(task).text


@pytest.mark.parametrize("status", [400, 403, 404, 405, 408, 413, 422, 429, 500, 503])
def test_every_fault_says_what_to_do_and_leads_back(school: School, status: int) -> None:
    @school.app.get(f"/fault/{status}")
    def fault() -> None:
        raise HTTPException(status, "What happened, <b>in a sentence</b>.")

    answer = school.client("anna").get(f"/fault/{status}")
    assert answer.status_code == status
    assert "What happened, &lt;b&gt;in a sentence&lt;/b&gt;." in answer.text
    assert 'href="/"' in answer.text
    assert answer.text.count("<h1>") == 1
    assert "default-src 'none'" in answer.headers["content-security-policy"]
