"""One number, wherever an attempt is told of: as it was judged, after a regrade, late, and after an instructor decided.

What was judged really goes through the database: attempts that earlier versions stored, judged again, and made-up runs
of the endings that these lack. The tasks' own submissions go the same way in `tests/promises`.
"""

from __future__ import annotations

import tarfile
import tempfile
from dataclasses import replace
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from grader.catalog.tasks.task_folders import load_task
from grader.judging.attempt import Attempt
from grader.judging.judge import judge, regrade
from grader.model.grade import Verdict
from grader.report.html.attempt_page import to_html
from grader.report.json_report import from_json
from grader.report.words.banner import sentence
from grader.run.workspace import Workspace
from grader.store.attempts import attempt_results
from grader.store.attempts.limits import LateBank
from grader.store.clock import now
from grader.store.courses import courses
from grader.store.courses.grading_rules import GradingRules, set_grading_rules
from grader.store.courses.late_days import set_late_bank
from grader.store.courses.learner_groups import make_group, put_into_group
from grader.store.delivery.webhooks import CHOSEN, add_webhook
from grader.store.grading import reviews
from grader.store.grading.comment_points import CommentChange, CommentPoints
from grader.store.grading.comment_replies import withdraw_comment
from grader.store.grading.regrade_requests import ask_for_regrade, decide_request
from grader.store.lti.lti_contexts import PlatformContext, note_member
from grader.store.lti.lti_scores import score_to_send
from grader.store.tables import DeliveryRow
from grader.store.tables.course_task import LatePolicy
from grader.store.tables.regrade_request import RequestDecision
from grader.store.tables.webhook import WebhookEvent
from tests.report import factory
from tests.store.platforms import connected
from tests.web.conftest import School
from tests.web.told_outcomes import (
    Left,
    certify,
    hold,
    hold_in_lists,
    judge_again,
    left_by,
    only_required,
    words,
)

_STORED = Path(__file__).parents[2] / "judging" / "fixtures"
STORED = (
    "ddp-toy-flat_script",
    "ddp-toy-never_wrapped",
    "ddp-toy-collective_on_rank_zero",
    "ddp-fashion-no_distributed_sampler",
    "gradient-descent-counts_batches_as_samples",
)
MADE_UP = ("crashed", "does_not_parse", "near_miss")


@cache
def judged(name: str) -> Attempt:
    """A run of that name, as it is judged today."""
    if name in MADE_UP:
        return judge(getattr(factory, name)().evidence, load_task("ddp-fashion"))
    return _stored(name)[1]


@cache
def _stored(name: str) -> tuple[Attempt, Attempt]:
    """The attempt as it was judged then, and as it is judged today."""
    with tempfile.TemporaryDirectory() as folder, tarfile.open(_STORED / f"{name}.tar.xz") as packed:
        # The first Pythons 3.11 know no filter; it is our own archive.
        safe: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        packed.extractall(folder, **safe)
        workspace = Workspace(Path(folder))
        today = regrade(workspace)
        return replace(today, grade=from_json(workspace.grade.read_text(encoding="utf-8"))), today


def left(attempt: Attempt) -> Left:
    return left_by(attempt.grade, to_html(attempt, {}))


def stored(school: School, attempt: Attempt, login: str = "anna") -> int:
    grade, files = left(attempt)
    return school.judge(login, grade=grade, files=files)


def hold_everywhere(school: School, number: int) -> None:
    hold(school, {number: "anna"})
    hold_in_lists(school, "anna", number)


@pytest.mark.parametrize("name", STORED + MADE_UP)
def test_every_ending_is_one_number_everywhere(school: School, name: str) -> None:
    only_required(school)
    number = stored(school, judged(name))
    hold_everywhere(school, number)
    reviews.override(school.store, number, Verdict.ACCEPTED, 92.0, "seen", actor_id=school.people["ines"])
    hold_everywhere(school, number)
    certify(school, "anna", number)
    reviews.withdraw_override(school.store, number, actor_id=school.people["ines"])
    # Judged again it is another one's grade: whatever still told the old number would be seen.
    other = judged((STORED + MADE_UP)[(STORED + MADE_UP).index(name) - 1])
    (again,) = judge_again(school, {number: left(other)})
    hold_everywhere(school, again)


@pytest.mark.parametrize(
    "name", ["ddp-toy-collective_on_rank_zero", "gradient-descent-counts_batches_as_samples"]
)
def test_what_was_judged_on_an_earlier_scale_says_so_until_it_is_judged_again(
    school: School, name: str
) -> None:
    then, today = _stored(name)
    number = stored(school, then)
    result = attempt_results.results_of(school.store, [number])[number]
    assert (result.points, result.max_points) == (then.grade.points, then.grade.max_points)
    assert sentence(result).endswith("(on an earlier scale)")
    hold_everywhere(school, number)
    (again,) = judge_again(school, {number: left(today)})
    assert "earlier scale" not in sentence(attempt_results.results_of(school.store, [again])[again])
    hold_everywhere(school, again)


def test_an_earlier_scale_of_100_says_so_too(school: School) -> None:
    """Where all could be observed; its report was written before there were two scales, and does not say it itself."""
    grade, report = factory.accepted().grade, to_html(factory.accepted(), {})
    assert "earlier scale" not in report
    left_then, files = left_by(replace(grade, schema=1), report)
    number = school.judge("anna", grade=left_then, files=files)
    for page in (f"/attempts/{number}", f"/attempts/{number}/report"):
        assert "Accepted: 100 of 100 (on an earlier scale)" in words(school.client("anna").get(page).text)


@pytest.mark.parametrize(
    ("name", "verdict", "points", "change"),
    [("accepted", Verdict.REJECTED, 80.0, "−20"), ("rejected", Verdict.ACCEPTED, 92.0, "+")],
)
def test_nothing_below_an_overridden_head_says_the_opposite(
    school: School, name: str, verdict: Verdict, points: float, change: str
) -> None:
    number = stored(school, getattr(factory, name)())
    reviews.override(school.store, number, verdict, points, "seen", actor_id=school.people["ines"])
    for page in (f"/attempts/{number}", f"/attempts/{number}/report"):
        text = words(school.client("anna").get(page).text)
        assert "None of this stands in the way of acceptance" not in text, page
        assert "What to fix first" not in text, page
        assert "between you and an accepted attempt" not in text, page
        assert "do not stand in the way" not in text, page
        assert f"Set by Ines {change}" in text, page


@pytest.mark.parametrize("verdict", [Verdict.ACCEPTED, Verdict.REJECTED])
def test_below_what_was_decided_nothing_says_that_it_still_waits(school: School, verdict: Verdict) -> None:
    number = stored(school, replace(factory.accepted(), grade=factory.grade(Verdict.HELD)))
    anna = school.client("anna")
    assert "until then it counts as nothing" in words(anna.get(f"/attempts/{number}").text).lower()
    reviews.override(school.store, number, verdict, 80.0, "seen", actor_id=school.people["ines"])
    for login in ("anna", "ines"):
        for page in (f"/attempts/{number}", f"/attempts/{number}/report"):
            text = words(school.client(login).get(page).text)
            assert "As judged: Held for review." in text, page
            assert "until then it counts as nothing" not in text.lower(), page
            assert "before it gets its verdict" not in text, page


def test_lateness_is_told_where_it_costs_and_the_certificate_says_the_same(school: School) -> None:
    task = courses.course_task(school.store, school.task)
    assert task is not None
    with school.store.read() as connection:
        late = now(connection) - timedelta(hours=30)
    terms = replace(task.terms, due_at=late, late_policy=LatePolicy.REDUCED, late_loss=0.05)
    courses.set_task(school.store, school.course, task.task, task.profile, terms)
    only_required(school)
    number = stored(school, judged("ddp-toy-flat_script"))
    result = attempt_results.results_of(school.store, [number])[number]
    assert sentence(result) == "Accepted: 90 of 100 (judged 100; 2 days late, −10 %)"
    # The verdict is the judge's own, and the headline has what was judged.
    assert "As judged" not in school.client("anna").get(f"/attempts/{number}").text
    hold_everywhere(school, number)
    certify(school, "anna", number)


def test_what_people_change_is_one_number_wherever_it_goes(school: School) -> None:
    """A comment's points, a late day of the bank and a decided request: here, in webhooks, and on a platform."""
    store, ines, anna = school.store, school.people["ines"], school.people["anna"]
    task = courses.course_task(store, school.task)
    assert task is not None
    with store.read() as connection:
        late = now(connection) - timedelta(hours=30)
    terms = replace(task.terms, due_at=late, late_policy=LatePolicy.REDUCED, late_loss=0.05)
    courses.set_task(store, school.course, task.task, task.profile, terms)
    only_required(school)
    set_late_bank(store, school.course, LateBank(1), actor_id=ines)
    set_grading_rules(store, school.course, GradingRules(regrade_days=365), actor_id=ines)
    add_webhook(store, school.course, "https://hook.example/", CHOSEN, actor_id=ines)
    platform = connected(store, school.course, ines)
    with store.write() as connection:
        note_member(connection, platform, anna, "u1")
    number = stored(school, judged("ddp-toy-flat_script"))
    _hold_outside(school, platform, number, 95.0)
    less = CommentChange(CommentPoints(-10.0))
    made = reviews.comment(store, number, "Too long.", author_id=ines, change=less)
    hold_everywhere(school, number)
    _hold_outside(school, platform, number, 85.5)
    asked = ask_for_regrade(store, number, "It is short.", person_id=anna)
    withdraw_comment(store, number, made, actor_id=ines)
    decide_request(store, asked, RequestDecision.CHANGED, "So it is.", actor_id=ines)
    hold_everywhere(school, number)
    _hold_outside(school, platform, number, 95.0)
    certify(school, "anna", number)


def test_a_groups_attempt_is_one_number_for_each_member(school: School) -> None:
    store, ines = school.store, school.people["ines"]
    group = make_group(store, school.course, "Blue", actor_id=ines)
    for login in ("anna", "ben"):
        put_into_group(store, school.course, group, school.people[login], actor_id=ines)
    number = stored(school, judged("ddp-toy-flat_script"))
    less = CommentChange(CommentPoints(-10.0))
    reviews.comment(store, number, "Too long.", author_id=ines, change=less)
    said = sentence(attempt_results.results_of(store, [number])[number])
    staff, at = school.client("ines"), f"/courses/{school.course}"
    for login in ("anna", "ben"):
        assert said in words(school.client(login).get(f"/attempts/{number}").text)
        for name in ("gradebook", "canvas", "moodle"):
            file = staff.get(f"{at}/exports/{name}.csv").text
            (line,) = [one.split(",") for one in file.splitlines() if login in one.split(",")]
            assert "90" in line, name
    told = staff.get(f"/api/v1{at}/gradebook").json()["learners"]
    points = {one["login"]: [cell["points"] for cell in one["cells"]] for one in told}
    assert (points["anna"], points["ben"]) == ([90.0], [90.0])


def _hold_outside(school: School, platform: PlatformContext, number: int, points: float) -> None:
    """What webhooks and the platform are told last of whose attempt it is, and files for platforms."""
    assert attempt_results.results_of(school.store, [number])[number].points == points
    grades = select(DeliveryRow.payload).where(DeliveryRow.topic == WebhookEvent.GRADE_CHANGED)
    with school.store.read() as connection:
        told = connection.execute(grades.order_by(DeliveryRow.id.desc()).limit(1)).scalar_one()
    assert told["points"] == points
    score = score_to_send(school.store, platform.id, school.people["anna"], school.task, 1_000)
    assert score is not None
    assert (score.points, score.max_points) == (points, 100.0)
    for name in ("canvas", "moodle"):
        file = school.client("ines").get(f"/courses/{school.course}/exports/{name}.csv").text
        (line,) = [one.split(",") for one in file.splitlines() if "anna" in one.split(",")]
        assert f"{points:g}" in line, name
