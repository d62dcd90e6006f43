"""A promise about a submission says nothing about how fast the machine was, unless it names the code."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from grader.checks.rule import load_rules
from grader.judging.attempt import Attempt
from grader.model.finding import EvidenceKind, Finding, Severity
from grader.model.promise import PromisedSubmission
from grader.model.submission import SourceFile, Submission
from grader.promises.comparison import broken_promises
from tests.report import factory

CLOCKED = sorted(rule.code for rule in load_rules() if rule.clocked)


SUBMISSION = Submission("x", (SourceFile("train.py", "x = 1\n"),))


def judged(*codes: str) -> Attempt:
    attempt = factory.accepted()
    found = tuple(Finding(code, Severity.HINT, EvidenceKind.TRACE, "Seen.") for code in codes)
    return replace(attempt, grade=replace(attempt.grade, findings=found))


def promised(*codes: str) -> PromisedSubmission:
    return PromisedSubmission(Path("x.py"), "accepted/x", "accepted", codes, (), SUBMISSION)


def test_what_depends_on_the_clock() -> None:
    assert CLOCKED == ["PERF002", "PERF003", "PERF005"]


@pytest.mark.parametrize("code", CLOCKED)
def test_a_busy_machine_breaks_no_promise(code: str) -> None:
    assert broken_promises(promised(), judged(code)) == []
    assert broken_promises(promised(code), judged(code)) == []
    assert broken_promises(promised(code), judged()) == [f"promised but not found: {code}"]


def test_other_hints_do() -> None:
    assert broken_promises(promised(), judged("DATA006", "PERF002")) == ["found but not promised: DATA006"]
