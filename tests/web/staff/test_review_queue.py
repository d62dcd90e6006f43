"""Held attempts reach an instructor: a tab with their number, a queue with the reasons, and one click that decides."""

from __future__ import annotations

import dataclasses
import html
import json
import re

from grader.model.grade import Verdict
from grader.store.attempts.class_submissions import counted_attempts
from grader.store.grading import reviews
from grader.store.grading.gradebook import gradebook
from grader.store.grading.grades import NewGrade
from grader.web.staff.exports import results_json
from tests.store.campus import verdict_of
from tests.web.conftest import School
from tests.web.grades import FOR_STAFF, graded

HELD = verdict_of(Verdict.HELD, 90.0)


def held_for_a_reason() -> NewGrade:
    grade = graded(Verdict.HELD)
    return dataclasses.replace(
        grade, document=grade.document.replace(f'"{FOR_STAFF}"\n  ]', f'"TRUST001: {FOR_STAFF}"\n  ]')
    )


def cell(school: School, login: str = "anna") -> tuple[Verdict | None, float]:
    row = next(row for row in gradebook(school.store, school.course).rows if row.login == login)
    return row.cells[school.task].verdict, row.cells[school.task].points


def words(text: str) -> str:
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", text)))


def decide(school: School, attempt: int, decision: str, **fields: str) -> str:
    answer = school.client("ines").post(
        f"/attempts/{attempt}/decide",
        data={"decision": decision, "remark": "", "points_if_rejected": "90", **fields},
    )
    assert answer.status_code == 303, answer.text
    return str(answer.headers["location"])


def test_every_page_with_tabs_says_how_many_wait(school: School) -> None:
    ines = school.client("ines")
    pages = ("", "/gradebook", "/attempts", "/people", "/settings", "/checks", "/stuck", "/review")
    for page in pages:
        assert ">Review</a>" in ines.get(f"/courses/{school.course}{page}").text, page
    school.judge("anna", grade=HELD)
    school.judge("ben", grade=HELD)
    for page in pages:
        assert ">Review (2)</a>" in ines.get(f"/courses/{school.course}{page}").text, page
    assert "Review (" not in school.client("anna").get(f"/courses/{school.course}").text


def test_the_first_page_says_in_which_course_somebody_waits(school: School) -> None:
    review = f'href="/courses/{school.course}/review"'
    assert review not in school.client("ines").get("/").text
    school.judge("anna", grade=HELD)
    school.judge("ben", grade=HELD)
    told = school.client("ines").get("/").text
    assert f"{review}>2 to review</a>" in told
    for login in ("anna", "otto"):
        assert "to review" not in school.client(login).get("/").text, "nobody waits for them"


def test_a_title_has_no_times_because_it_cannot_follow_the_readers_clock(school: School) -> None:
    attempt = school.judge("anna", grade=HELD)
    found = re.search(
        r"<title>(.*?)</title>", school.client("anna").get(f"/attempts/{attempt}").text, re.DOTALL
    )
    assert found is not None
    said = "With the instructors: it counts as nothing until they decide"
    assert found[1] == f"Your 1st attempt: {said} · grader"


def test_the_queue_says_who_waits_since_when_and_why(school: School) -> None:
    first = school.judge("ben", grade=held_for_a_reason())
    school.judge("anna", grade=graded(Verdict.HELD))
    text = school.client("ines").get(f"/courses/{school.course}/review").text
    told = words(text)
    assert told.index("Ben") < told.index("Anna"), "the oldest first"
    assert FOR_STAFF in told
    assert 'href="/rules/TRUST001"' in text
    assert f'href="/attempts/{first}/review"' in text
    assert "just now" in told
    assert school.client("anna").get(f"/courses/{school.course}/review").status_code == 404
    assert school.client("otto").get(f"/courses/{school.course}/review").status_code == 404


def test_accepting_gives_the_judged_points_and_leads_to_the_next(school: School) -> None:
    first, second = school.judge("ben", grade=HELD), school.judge("anna", grade=HELD)
    assert cell(school, "ben") == (Verdict.HELD, 0.0)
    assert decide(school, first, "accept") == f"/attempts/{second}/review"
    assert cell(school, "ben") == (Verdict.ACCEPTED, 90.0)
    assert decide(school, second, "reject", points_if_rejected="20") == f"/courses/{school.course}/review"
    assert cell(school) == (Verdict.REJECTED, 20.0)
    ines = school.client("ines")
    again = ines.post(f"/attempts/{second}/decide", data={"decision": "accept"}, follow_redirects=True)
    assert "not held any more" in again.text
    assert cell(school) == (Verdict.REJECTED, 20.0)
    assert "Nothing waits for you" in ines.get(f"/courses/{school.course}/review").text


def test_asking_decides_nothing_and_the_queue_remembers(school: School) -> None:
    first, second = school.judge("ben", grade=HELD), school.judge("anna", grade=HELD)
    assert decide(school, first, "ask", remark="What is line 3 for?") == f"/attempts/{second}/review"
    assert cell(school, "ben") == (Verdict.HELD, 0.0)
    assert "What is line 3 for?" in school.client("ben").get(f"/attempts/{first}").text
    assert "asked" in words(school.client("ines").get(f"/courses/{school.course}/review").text)
    assert decide(school, second, "accept") == f"/courses/{school.course}/review", (
        "the other waits for an answer"
    )
    empty = school.client("ines").post(f"/attempts/{first}/decide", data={"decision": "ask", "remark": " "})
    assert empty.status_code == 422
    assert "What do you want to know?" in empty.text


def test_the_learner_answers_and_the_instructors_have_it_again(school: School) -> None:
    attempt, other = school.judge("anna", grade=HELD), school.judge("ben", grade=HELD)
    page, anna = f"/attempts/{attempt}", school.client("anna")
    course = f"/courses/{school.course}"
    ways = (course, f"{course}/tasks/{school.task}")
    assert "Your answer" not in anna.get(page).text, "nobody asked"
    assert all(f'href="{page}#question"' not in anna.get(way).text for way in ways)
    decide(school, attempt, "ask", remark="What is <line> 3 for?")
    asked = anna.get(page).text
    assert all(f'href="{page}#question"' in anna.get(way).text for way in ways), (
        "each way leads to the question"
    )
    assert all("#question" not in school.client("ben").get(way).text for way in ways)
    assert f'action="{page}/answer"' in asked
    assert "&lt;time" not in asked
    assert "Ines asks you What is <line> 3 for?" in words(asked)
    assert asked.count("What is &lt;line&gt; 3 for?") == 1, "it is asked once"
    assert "/reply" not in asked, "and only the form that answers it is there"
    assert "Your answer" not in school.client("ines").get(page).text
    document = school.program(school.token("anna")).get(f"/api/v1{page}").json()
    assert document["question"] == "What is <line> 3 for?"

    assert school.client("ines").post(f"{page}/answer", data={"answer": "mine"}).status_code == 303
    empty = anna.post(f"{page}/answer", data={"answer": " "})
    assert (empty.status_code, "An answer is needed." in empty.text) == (422, True)
    done = anna.post(f"{page}/answer", data={"answer": "It <counts> epochs."}, follow_redirects=True)
    assert "Your answer is with the instructors" in done.text
    assert "It <counts> epochs." in words(done.text), "it stands among the comments"
    assert f'action="{page}/answer"' not in done.text
    assert all(f'href="{page}#question"' not in anna.get(way).text for way in ways)
    twice = anna.post(f"{page}/answer", data={"answer": "again"}, follow_redirects=True)
    assert "No question waits for your answer." in twice.text

    told = words(school.client("ines").get(f"/courses/{school.course}/review").text)
    assert "answered" in told
    assert "It <counts> epochs." in told
    assert decide(school, other, "accept") == f"{page}/review", "it is the instructors' turn"
    review = words(school.client("ines").get(f"{page}/review").text)
    assert "Anna, A first network on several GPUs" in review
    assert "It <counts> epochs." in review
    assert "answered by Anna" in review, "the audit"
    assert school.program(school.token("anna")).get(f"/api/v1{page}").json()["question"] is None
    assert school.client("ben").post(f"{page}/answer", data={"answer": "his"}).status_code == 404


def test_more_points_than_judged_are_no_rejection(school: School) -> None:
    attempt = school.judge("anna", grade=HELD)
    answer = school.client("ines").post(
        f"/attempts/{attempt}/decide",
        data={"decision": "reject", "points_if_rejected": "95", "remark": "my words"},
    )
    assert answer.status_code == 422
    assert "from 0 to 90" in answer.text
    assert "my words" in answer.text, "what was typed is not lost"
    assert not reviews.overrides_of(school.store, attempt)


def test_no_verdict_is_chosen_beforehand_and_held_is_none_to_choose(school: School) -> None:
    attempt = school.judge("anna", grade=HELD)
    reviews.override(school.store, attempt, Verdict.ACCEPTED, 90.0, "fine", actor_id=school.people["ines"])
    text = school.client("ines").get(f"/attempts/{attempt}/review").text
    assert '<option value="accepted" selected>' in text
    assert '<option value="held"' not in text
    answer = school.client("ines").post(
        f"/attempts/{attempt}/override", data={"verdict": "held", "points": "1", "reason": "hm"}
    )
    assert answer.status_code == 422


def test_the_learner_reads_that_instructors_have_it_and_no_points(school: School) -> None:
    attempt = school.judge("anna", grade=HELD)
    anna = school.client("anna")
    for page in (f"/courses/{school.course}", f"/courses/{school.course}/tasks/{school.task}"):
        told = words(anna.get(page).text).casefold()
        assert "with the instructors since" in told
        assert "90 of 100" not in told
    decide(school, attempt, "accept")
    for page in (f"/courses/{school.course}", f"/courses/{school.course}/tasks/{school.task}"):
        told = words(anna.get(page).text)
        assert "With the instructors" not in told
        assert "Accepted by an instructor 90 of 100" in told


def test_the_gradebook_shows_held_and_counts_nothing(school: School) -> None:
    school.judge("anna", grade=HELD)
    school.judge("ben", grade=verdict_of(Verdict.ACCEPTED, 100.0))
    ines = school.client("ines")
    assert "! held" in words(ines.get(f"/courses/{school.course}/gradebook").text)
    lines = ines.get(f"/courses/{school.course}/exports/gradebook.csv").text.splitlines()
    anna = next(line for line in lines if line.startswith("anna")).split(",")
    assert (anna[2], anna[4], anna[6]) == ("0", "0", "held")


def test_the_course_says_first_what_waits(school: School) -> None:
    school.judge("anna", grade=HELD)
    school.hand_in("ben")
    text = school.client("ines").get(f"/courses/{school.course}").text
    assert f'href="/courses/{school.course}/review">1</a>' in text
    assert f'href="/courses/{school.course}/stuck">0</a>' in text
    assert 'href="/queue">1</a>' in text
    assert "What waits" not in school.client("anna").get(f"/courses/{school.course}").text


def test_gradescope_gets_no_points_for_what_is_held(school: School) -> None:
    school.judge("anna", grade=graded(Verdict.HELD))
    (one,) = counted_attempts(school.store, school.task)
    told = json.loads(results_json(one) or "")
    assert told["score"] == 0
    assert told["extra_data"]["verdict"] == "held"
    assert told["output"].startswith("With the instructors since")
    decide(school, one.attempt_id, "accept")
    (one,) = counted_attempts(school.store, school.task)
    told = json.loads(results_json(one) or "")
    assert (told["score"], told["extra_data"]["verdict"]) == (40, "accepted")
    assert told["output"].startswith("Accepted by an instructor: 40 of 100 (judged 40).\n\n")
    assert told["output"].count(" of 100") == 1, "one banner"
    assert "No set_epoch" not in told["output"]
    assert "until they decide" not in told["output"]
