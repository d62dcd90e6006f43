"""`results.json` as Gradescope reads it: its own keys and words, our points, and nothing that only staff may know."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from grader.model.finding import Finding
from grader.model.grade import CheckResult, Grade, ItemState, State, Verdict
from grader.report.audience import Audience
from grader.report.exports import gradescope
from tests.report import factory

# Gradescope's published specification of the file: every key that it reads, of the document and of a test.
DOCUMENT = {
    "score", "execution_time", "output", "output_format", "test_output_format", "test_name_format", "visibility",
    "stdout_visibility", "extra_data", "tests", "leaderboard",
}  # fmt: skip
TEST = {
    "score", "max_score", "status", "name", "name_format", "number", "output", "output_format", "tags", "visibility",
    "extra_data",
}  # fmt: skip
VISIBILITIES = {"hidden", "after_due_date", "after_published", "visible"}


def results(grade: Grade) -> dict[str, Any]:
    document = json.loads(gradescope.of_grade(grade, Audience.LEARNER))
    assert isinstance(document, dict)
    return document


@pytest.mark.parametrize(
    "grade",
    [
        factory.accepted().grade,
        factory.rejected().grade,
        factory.deadlocked().grade,
        factory.crashed().grade,
        factory.hostile().grade,
        factory.grade(Verdict.HELD),
        factory.grade(Verdict.JUDGE_ERROR, rubric=(), points=0.0, max_points=0.0),
    ],
    ids=lambda g: g.verdict.value,
)
def test_it_has_the_form_that_gradescope_publishes(grade: Grade) -> None:
    document = results(grade)
    # The total of the task is ours; Gradescope passes over what it does not know.
    assert set(document) - {"max_score"} <= DOCUMENT
    assert isinstance(document["score"], float)
    assert 0 <= document["score"] <= document["max_score"]
    assert document["execution_time"] >= 0
    assert document["visibility"] in VISIBILITIES
    assert document["stdout_visibility"] == "hidden"
    assert document["output_format"] == document["test_output_format"] == "text"
    assert document["output"].strip()
    assert [test["number"] for test in document["tests"]] == [str(n + 1) for n in range(len(grade.rubric))]
    for test in document["tests"]:
        assert set(test) <= TEST
        assert test["visibility"] in VISIBILITIES
        assert test.get("status", "passed") in {"passed", "failed"}
        assert 0 <= test["score"] <= test["max_score"]
        assert test["name"]
        assert test["output"]


def test_each_rubric_item_is_a_test_with_its_points_and_findings() -> None:
    document = results(factory.rejected().grade)
    tests = {test["name"]: test for test in document["tests"]}
    partition = tests["Every sample goes to exactly one rank"]
    assert (partition["score"], partition["max_score"], partition["status"]) == (0, 25, "failed")
    assert "DATA001 (error) at train.py:23, ranks 0 and 1" in partition["output"]
    assert "Instead: Give each rank its own part" in partition["output"]
    gradients = tests["Gradients are averaged over the ranks"]
    assert (gradients["score"], gradients["max_score"], gradients["status"]) == (25, 25, "passed")
    assert "EVAL003" in document["output"], "findings that cost nothing are told once, for the whole"


def test_partial_credit_is_no_pass() -> None:
    grade = factory.accepted().grade
    half = replace(grade.rubric[-1], earned=7.5)
    document = results(replace(grade, rubric=(*grade.rubric[:-1], half)))
    assert document["tests"][-1]["status"] == "failed"
    assert document["tests"][-1]["score"] == 7.5


def test_what_cannot_be_shown_neither_passes_nor_fails_and_costs_nothing() -> None:
    document = results(factory.accepted().grade)
    (left_out,) = [test for test in document["tests"] if "cannot be shown" in test["name"]]
    assert "status" not in left_out
    assert (left_out["score"], left_out["max_score"]) == (0, 0)
    assert document["score"] == document["max_score"] == 100.0
    earlier = replace(factory.accepted().grade, points=60.0, max_points=80.0, schema=1)
    assert results(earlier)["score"] == 75.0
    assert "60 of 80 (on an earlier scale). Here they count as 75 of 100." in results(earlier)["output"]


def test_a_learner_is_never_shown_what_is_for_staff() -> None:
    grade = factory.rejected().grade
    first, *rest = grade.rubric
    secret = CheckResult("TRUST002", State.CONTRADICTED, (), "It reaches for the judge.")
    accused = replace(
        first, state=ItemState.LOST, codes=("TRUST002",), reason="TRUST002: It forged its trace."
    )
    held = replace(
        grade,
        verdict=Verdict.HELD,
        verdict_reason="The trace was forged.",
        rubric=(accused, *rest),
        findings=(*grade.findings, factory.TRUST002),
        checks=(*grade.checks, secret),
        review=("TRUST002: It reaches for the judge.",),
    )
    for staff_only in (grade, held):
        text = gradescope.of_grade(staff_only, Audience.LEARNER)
        for word in ("TRUST", "forged", "reaches for", factory.TRUST002.message):
            assert word not in text
    assert "An instructor looks at this attempt" in results(held)["output"]


def test_output_of_a_script_is_harmless_text() -> None:
    finding: Finding = replace(factory.DATA001, message="a\x1b[2Jb\u202ec")
    document = results(replace(factory.rejected().grade, findings=(finding,)))
    shown = json.dumps(document, ensure_ascii=False)
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "␛[2J" in shown
