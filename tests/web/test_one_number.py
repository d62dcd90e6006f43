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

from grader.catalog.tasks import load_task
from grader.judging.attempt import Attempt
from grader.judging.judge import judge, regrade
from grader.model.grade import Verdict
from grader.report.banner import sentence
from grader.report.html import to_html
from grader.report.json_report import from_json
from grader.run.workspace import Workspace
from grader.store import attempt_results, courses, reviews
from grader.store.clock import now
from grader.store.tables.course_task import LatePolicy
from tests.report import factory
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

_STORED = Path(__file__).parents[1] / "judging" / "fixtures"
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
    hold_everywhere(school, number)
    certify(school, "anna", number)
