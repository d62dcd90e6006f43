"""What people add to grades, from the forms to the one number: points of comments, answers, requests for a regrade."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import update

from grader.model.grade import Verdict
from grader.store.attempts.attempt_results import results_of
from grader.store.clock import database_now
from grader.store.courses.enrolment_details import set_section
from grader.store.courses.grading_rules import GradingRules, set_grading_rules
from grader.store.grading import reviews
from grader.store.grading.comment_library import LibraryComment, add_entry, entries_of
from grader.store.grading.grades import NewGrade
from grader.store.tables import GradeRow
from grader.store.tables.person import Role
from tests.web.conftest import School
from tests.web.grades import graded
from tests.web.told_outcomes import words


def counts(school: School, attempt: int) -> float:
    return results_of(school.store, [attempt])[attempt].points


def with_items() -> NewGrade:
    """40 of 100 points, all of them of one item."""
    grade = graded()
    document = json.loads(grade.document)
    earned = {**document["rubric"][0], "id": "wraps", "title": "Wraps", "points": 40.0, "earned": 40.0}
    document["rubric"].append(earned)
    return replace(grade, document=json.dumps(document))


def test_points_of_comments_are_in_every_number_and_bounded_by_their_item(school: School) -> None:
    attempt = school.judge("anna", grade=with_items())
    judged, item, earned = counts(school, attempt), "wraps", 40.0
    ines = school.client("ines")
    at, page = f"/courses/{school.course}", f"/attempts/{attempt}"
    ines.post(
        f"{at}/library", data={"title": "Style", "text": "Please name things.", "points": "-3", "item": item}
    )
    (entry,) = entries_of(school.store, school.course)
    answer = ines.post(f"{page}/comment", data={"entry": str(entry.id), "text": "Line 3, too."})
    assert answer.status_code == 303
    assert counts(school, attempt) == pytest.approx(judged - 3)
    book = ines.get(f"{at}/gradebook").text
    assert "comments −3" in book
    # As much as the item has, and no more.
    ines.post(f"{page}/comment", data={"text": "All of it", "comment_points": "−100", "item": item})
    assert counts(school, attempt) == pytest.approx(judged - earned)
    told = f"{round(judged - earned, 2):g} of 100"
    anna = school.client("anna")
    assert "Please name things." in words(anna.get(page).text)
    for browser, place in (
        (anna, f"{at}/tasks/{school.task}"),
        (anna, page),
        (ines, f"{at}/attempts"),
        (ines, f"{at}/exports/attempts.csv"),
    ):
        assert told in words(browser.get(place).text), place
    assert anna.get(f"/api/v1/attempts/{attempt}").json()["points"] == pytest.approx(judged - earned)
    assert anna.get(f"/api/v1/attempts/{attempt}/grade").json()["counts"]["points"] == pytest.approx(
        judged - earned
    )
    book = ines.get(f"/api/v1/courses/{school.course}/gradebook").json()
    (cell,) = next(one for one in book["learners"] if one["login"] == "anna")["cells"]
    assert cell["points"] == pytest.approx(judged - earned)

    # An override is given as it is; withdrawn, the comments count again; taken back, they do not.
    reviews.override(school.store, attempt, Verdict.ACCEPTED, 50, "so", actor_id=school.people["ines"])
    assert counts(school, attempt) == 50
    reviews.withdraw_override(school.store, attempt, actor_id=school.people["ines"])
    assert counts(school, attempt) == pytest.approx(judged - earned)
    for one in reviews.comments_of(school.store, attempt):
        assert ines.post(f"{page}/comments/{one.id}/withdraw").status_code == 303
    assert counts(school, attempt) == judged
    assert "Please name things." not in anna.get(page).text


def test_a_changed_entry_changes_those_that_used_it_only_where_that_is_wanted(school: School) -> None:
    attempt = school.judge("anna", grade=graded())
    judged = counts(school, attempt)
    ines, at = school.client("ines"), f"/courses/{school.course}"
    fields = {"title": "Style", "text": "Name things.", "points": "-2"}
    ines.post(f"{at}/library", data=fields)
    (entry,) = entries_of(school.store, school.course)
    ines.post(f"/attempts/{attempt}/comment", data={"entry": str(entry.id)})
    ines.post(f"{at}/library/{entry.id}", data={**fields, "points": "-4"})
    assert counts(school, attempt) == judged - 2
    ines.post(
        f"{at}/library/{entry.id}", data={**fields, "text": "Name it.", "points": "-5", "also_used": "on"}
    )
    assert counts(school, attempt) == judged - 5
    assert [one.text for one in reviews.comments_of(school.store, attempt)] == ["Name it."]
    ines.post(f"{at}/library/{entry.id}/retire")
    assert entries_of(school.store, school.course) == ()
    assert counts(school, attempt) == judged - 5
    assert ines.post(f"{at}/library", data={"title": "", "text": "x"}).status_code == 422
    assert ines.get(f"{at}/library/{entry.id}").status_code == 404


def test_what_a_learner_answers_waits_until_staff_answer_or_say_that_none_is_needed(school: School) -> None:
    attempt = school.judge("anna")
    made = reviews.comment(school.store, attempt, "Why twice?", author_id=school.people["ines"])
    anna, ben, ines = (school.client(one) for one in ("anna", "ben", "ines"))
    place, queue = f"/attempts/{attempt}/comments/{made}", f"/courses/{school.course}/review"
    assert ben.post(f"{place}/reply", data={"reply": "mine"}).status_code == 404
    assert anna.post(f"{place}/withdraw").status_code == 404
    assert "Answers to comments" not in ines.get(queue).text
    assert anna.post(f"{place}/reply", data={"reply": "It was slow."}).status_code == 303
    assert "It was slow." in ines.get(queue).text
    assert "Review (1)" in ines.get(queue).text
    ines.post(f"{place}/reply", data={"reply": "I see."})
    assert "Answers to comments" not in ines.get(queue).text
    assert "I see." in anna.get(f"/attempts/{attempt}").text
    anna.post(f"{place}/reply", data={"reply": "Thanks."})
    (settle,) = re.findall(r'action="([^"]+/settle)"', ines.get(queue).text)
    ines.post(settle)
    assert "Answers to comments" not in ines.get(queue).text


def test_a_regrade_is_asked_for_in_time_and_decided_with_a_reply(school: School) -> None:
    attempt = school.judge("anna")
    anna, ben, ines = (school.client(one) for one in ("anna", "ben", "ines"))
    place, queue = f"/attempts/{attempt}/regrade-requests", f"/courses/{school.course}/review"
    assert "Ask for a regrade" not in anna.get(f"/attempts/{attempt}").text
    assert anna.post(place, data={"request": "Look again"}).status_code == 422, "the course takes none"
    rules = GradingRules(regrade_days=7)
    set_grading_rules(school.store, school.course, rules, actor_id=school.people["ines"])
    assert "Ask for a regrade" in anna.get(f"/attempts/{attempt}").text
    assert ben.post(place, data={"request": "Look again"}).status_code == 404
    assert ines.post(place, data={"request": "Look again"}).status_code == 404, "it is not hers"
    assert anna.post(place, data={"request": " "}).status_code == 422
    assert anna.post(place, data={"request": "Look <again>"}).status_code == 303
    assert anna.post(place, data={"request": "And again"}).status_code == 422, "one at a time"
    assert "Look &lt;again&gt;" in ines.get(queue).text
    assert ">1</a>" in ines.get(f"/courses/{school.course}").text
    (number,) = re.findall(rf'action="{place}/(\d+)"', ines.get(f"/attempts/{attempt}/review").text)
    assert ines.post(f"{place}/{number}", data={"decision": "keep"}).status_code == 422, "no reply"
    changed = {
        "decision": "override",
        "request_reply": "You are right.",
        "request_verdict": "accepted",
        "request_points": "88",
    }
    assert ines.post(f"{place}/{number}", data=changed).status_code == 303
    assert counts(school, attempt) == 88
    said = words(anna.get(f"/attempts/{attempt}").text)
    assert "your grade was changed You are right." in said
    assert "Regrade requests" not in ines.get(queue).text
    assert ines.post(f"{place}/{number}", data={**changed, "decision": "keep"}).status_code == 422
    with school.store.write() as connection:
        connection.execute(
            update(GradeRow).values(created_at=database_now(-timedelta(days=8).total_seconds()))
        )
    assert "Ask for a regrade" not in anna.get(f"/attempts/{attempt}").text
    assert anna.post(place, data={"request": "Too late"}).status_code == 422


def test_an_assistant_talks_to_their_section_and_an_observer_reads(school: School) -> None:
    set_section(school.store, school.course, [school.people["anna"]], "A", actor_id=None)
    school.join("tess", Role.ASSISTANT, section="A")
    school.join("otis", Role.OBSERVER)
    rules = GradingRules(regrade_days=7)
    set_grading_rules(school.store, school.course, rules, actor_id=school.people["ines"])
    add_entry(school.store, school.course, LibraryComment("Twice", "Why?"), actor_id=school.people["ines"])
    attempt, other = school.judge("anna"), school.judge("ben")
    made = reviews.comment(school.store, attempt, "Why twice?", author_id=school.people["ines"])
    anna, tess, otis = (school.client(one) for one in ("anna", "tess", "otis"))
    at, place = f"/courses/{school.course}", f"/attempts/{attempt}"
    anna.post(f"{place}/comments/{made}/reply", data={"reply": "It was slow."})
    anna.post(f"{place}/regrade-requests", data={"request": "Look again"})
    for reader in (tess, otis):
        assert "It was slow." in reader.get(f"{at}/review").text
        assert "Look again" in reader.get(f"{place}/review").text
        library = reader.get(f"{at}/library")
        assert "Twice" in library.text
        assert "<form" not in library.text.partition('id="main"')[2]
        assert reader.post(f"{at}/library", data={"title": "New", "text": "new"}).status_code == 404
    for page in (place, f"{place}/review"):
        assert "Answer to this comment" not in otis.get(page).text, page
        assert "request_reply" not in otis.get(page).text, page
    answer, decision = {"reply": "I see."}, {"decision": "keep", "request_reply": "It holds."}
    (number,) = re.findall(r"regrade-requests/(\d+)", tess.get(f"{place}/review").text)
    assert otis.post(f"{place}/comments/{made}/reply", data=answer).status_code == 404
    assert otis.post(f"{place}/regrade-requests/{number}", data=decision).status_code == 404
    told = tess.post(f"{place}/comments/{made}/reply", data=answer)
    assert told.headers["location"] == f"{place}/review"
    assert tess.post(f"{place}/regrade-requests/{number}", data=decision).status_code == 303
    assert tess.post(f"/attempts/{other}/comment", data={"text": "Not mine"}).status_code == 404
    assert "It holds." in anna.get(place).text
