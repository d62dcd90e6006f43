"""The JSON of a grade is a promise to programs: its form, its bytes, and what it does not tell a learner."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from grader.model.finding import EvidenceKind, Finding, Location, Severity
from grader.model.fix import Edit, Fix
from grader.model.grade import CheckResult, State, Verdict
from grader.report.audience import Audience
from grader.report.json_report import from_json, to_json
from tests.report import factory


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Place(_Strict):
    path: str
    line: int
    column: int
    end_line: int


class _Edit(_Strict):
    path: str
    line: int
    column: int
    end_line: int
    end_column: int
    text: str


class _Fix(_Strict):
    summary: str
    edits: list[_Edit]


class _Finding(_Strict):
    code: str
    severity: Literal["error", "warning", "hint", "review"]
    evidence: Literal["source", "trace", "outside", "evaluation"]
    path: str | None
    line: int | None
    column: int | None
    end_line: int | None
    ranks: list[int]
    message: str
    hint: str
    where: list[_Place]
    confirmed: bool
    refuted: str
    details: dict[str, Any]
    fix: _Fix | None = None


class _Rubric(_Strict):
    id: str
    title: str
    must: bool
    points: float
    full_points: float
    earned: float
    state: Literal["earned", "partly", "lost", "not_reached", "not_shown", "not_seen"]
    evidence: list[str]
    reason: str
    codes: list[str]
    not_seen: float


class _Check(_Strict):
    code: str
    state: Literal["verified", "contradicted", "not_observable", "not_reached"]
    evidence: list[str]
    reason: str


class _Diagnosis(_Strict):
    id: str
    title: str
    explanation: str
    hint: str
    where: list[_Place]
    ranks: list[int]
    details: dict[str, Any]


class _Measure(_Strict):
    name: str
    title: str
    unit: str
    decimals: int
    direction: Literal["max", "min"]
    readable_step: float
    share: bool
    reported_as: str


class _Grade(_Strict):
    """Schema 2, written a second time: what programs may rely on."""

    schema_: Literal[2]
    verdict: Literal[
        "judge_error", "held", "timed_out", "deadlocked", "out_of_memory", "crashed", "rejected", "accepted"
    ]
    verdict_reason: str
    points: float
    max_points: float
    task: str
    task_version: str
    submission: str
    digest: str
    profile: str
    dataset: str
    world_size: int
    runtime: str
    diagnosis: _Diagnosis | None
    rubric: list[_Rubric]
    findings: list[_Finding]
    checks: list[_Check]
    metrics: dict[str, float | None]
    measures: list[_Measure]
    phases: dict[str, float | None]
    environment: dict[str, Any]
    gating: list[str]
    notes: list[str]
    review: list[str]
    review_subjects: list[str]


_ATTEMPTS = ("accepted", "rejected", "deadlocked", "crashed", "does_not_parse", "hostile")


def _no_constant(name: str) -> None:
    raise AssertionError(f"{name} is not JSON")


@pytest.mark.parametrize("name", _ATTEMPTS)
def test_every_grade_has_the_form_of_schema_2(name: str) -> None:
    document = json.loads(to_json(getattr(factory, name)().grade), parse_constant=_no_constant)
    document["schema_"] = document.pop("schema")
    _Grade.model_validate(document)


@pytest.mark.parametrize("name", _ATTEMPTS)
def test_a_grade_survives_the_way_to_json_and_back(name: str) -> None:
    grade = getattr(factory, name)().grade
    text = to_json(grade, Audience.STAFF)
    again = from_json(text)
    assert to_json(again, Audience.STAFF) == text
    assert (again.verdict, again.points, again.rubric, again.checks) == (
        grade.verdict,
        grade.points,
        grade.rubric,
        grade.checks,
    )
    assert again.diagnosis == grade.diagnosis
    assert [f.message for f in again.findings] == [f.message for f in grade.findings]
    assert [f.where for f in again.findings] == [f.where for f in grade.findings]


def test_a_fix_is_told_where_there_is_one_and_survives_the_way_back() -> None:
    fix = Fix("Leaves it out.", (Edit("train.py", 3, 5, 4, 1, ""), Edit("train.py", 9, 1, 9, 1, "x = 1\n")))
    grade = factory.grade(findings=(replace(factory.DATA001, fix=fix), factory.DATA001))
    document = json.loads(to_json(grade))
    document["schema_"] = document.pop("schema")
    _Grade.model_validate(document)
    with_fix, without = document["findings"]
    assert with_fix["fix"]["edits"][1] == {
        "path": "train.py",
        "line": 9,
        "column": 1,
        "end_line": 9,
        "end_column": 1,
        "text": "x = 1\n",
    }
    assert "fix" not in without, "grades without fixes are the bytes that they were"
    assert [one.fix for one in from_json(to_json(grade)).findings] == [fix, None]


def test_the_order_in_which_facts_were_gathered_does_not_show() -> None:
    grade = factory.rejected().grade
    turned = replace(
        grade,
        metrics=dict(reversed(grade.metrics.items())),
        environment=dict(reversed(grade.environment.items())),
        phases=dict(reversed(grade.phases.items())),
        findings=tuple(replace(f, details=dict(reversed(f.details.items()))) for f in grade.findings),
    )
    assert to_json(turned) == to_json(grade)


def test_numbers_that_json_lacks_become_null() -> None:
    finding = replace(factory.DATA001, details={"loss": math.nan, "deep": [{"x": math.inf}]})
    grade = replace(
        factory.grade(findings=(finding,)), metrics={"accuracy": math.nan, "loss": -math.inf}, points=math.nan
    )
    document = json.loads(to_json(grade), parse_constant=_no_constant)
    assert document["metrics"] == {"accuracy": None, "loss": None}
    assert document["points"] is None
    assert document["findings"][0]["details"] == {"deep": [{"x": None}], "loss": None}


def test_the_text_is_ascii_so_that_no_terminal_can_be_steered_by_it() -> None:
    text = to_json(factory.hostile().grade)
    assert text.isascii()
    assert "\x1b" not in text
    assert text.endswith("}\n")


def test_learners_do_not_read_what_is_for_staff_to_weigh() -> None:
    grade = replace(
        factory.grade(Verdict.HELD),
        verdict_reason="The trace claims 400 steps in 0.1 s.",
        findings=(factory.DATA001, factory.TRUST002),
        checks=(
            CheckResult(
                "TRUST002", State.CONTRADICTED, (EvidenceKind.OUTSIDE,), "The trace is contradicted."
            ),
        ),
        rubric=(
            replace(factory.rubric()[0], codes=("TRUST002",), reason="TRUST002: the trace is contradicted."),
        ),
    )
    learner, staff = to_json(grade), to_json(grade, Audience.STAFF)
    assert "TRUST" not in learner
    assert "400 steps" not in learner
    assert "contradicted." not in learner
    assert "instructor" in json.loads(learner)["verdict_reason"]
    assert [f["code"] for f in json.loads(staff)["findings"]] == ["DATA001", "TRUST002"]
    assert json.loads(staff)["verdict_reason"] == "The trace claims 400 steps in 0.1 s."


def test_a_finding_without_a_place_says_null() -> None:
    finding = Finding("DIST001", Severity.ERROR, EvidenceKind.TRACE, "No group.")
    document = json.loads(to_json(factory.grade(findings=(finding,))))
    assert (document["findings"][0]["path"], document["findings"][0]["line"]) == (None, None)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"schema": 2}',
        '{"schema": 1}',
        '{"schema": 1, "verdict": "perfect"}',
    ],
)
def test_anything_else_is_refused_in_words(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        from_json(text)


_TEXT = st.text(st.characters(codec=None), max_size=30)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=8,
)


@given(message=_TEXT, details=st.dictionaries(_TEXT, _VALUES, max_size=4), line=st.integers(1, 10**6))
def test_whatever_a_finding_holds_the_bytes_are_stable(
    message: str, details: dict[str, Any], line: int
) -> None:
    finding = Finding(
        "X1", Severity.HINT, EvidenceKind.SOURCE, message, where=(Location("a.py", line),), details=details
    )
    text = to_json(factory.grade(findings=(finding,)))
    assert text.isascii()
    assert to_json(from_json(text)) == text
    assert from_json(text).findings[0].message == message
