"""A promise says nothing about how fast the machine was, unless it names the code; else what is accepted earns 100."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from grader.catalog.tasks.task_folders import load_task
from grader.checks.evidence import Evidence
from grader.checks.rule import load_rules
from grader.judging.attempt import Attempt
from grader.model.finding import EvidenceKind, Finding, Severity
from grader.model.grade import Verdict
from grader.model.promise import PromisedSubmission
from grader.model.submission import SourceFile, Submission
from grader.promises.comparison import broken_promises
from grader.promises.verification import clock_decides
from tests.report import factory

CLOCKED = sorted(rule.code for rule in load_rules() if rule.clocked)


SUBMISSION = Submission("x", (SourceFile("train.py", "x = 1\n"),))


def judged(*codes: str) -> Attempt:
    attempt = factory.accepted()
    found = tuple(Finding(code, Severity.HINT, EvidenceKind.TRACE, "Seen.") for code in codes)
    return replace(attempt, grade=replace(attempt.grade, findings=found))


def promised(*codes: str, points: float | None = None) -> PromisedSubmission:
    wanted = None if points is None else (points, points)
    return PromisedSubmission(Path("x.py"), "accepted/x", "accepted", codes, (), SUBMISSION, wanted)


def short_of(item: str, *codes: str) -> Attempt:
    """Accepted, and without the points of one item."""
    attempt = judged(*codes)
    rubric = factory.rubric({item: codes})
    earned = sum(one.earned for one in rubric)
    return replace(attempt, grade=replace(attempt.grade, rubric=rubric, points=earned))


@pytest.mark.parametrize(
    ("verdict", "codes", "points", "waits"),
    [
        ("accepted", ("EVAL006",), None, True),
        ("rejected", (), None, True),  # for its time
        ("rejected", ("DATA001",), 80.0, True),
        ("rejected", ("DATA001",), None, False),
        ("out_of_memory", (), None, False),
        ("crashed", (), None, False),
    ],
)
def test_a_reference_is_measured_only_where_the_clock_decides(
    verdict: str, codes: tuple[str, ...], points: float | None, waits: bool
) -> None:
    one = replace(promised(*codes, points=points), verdict=verdict)
    assert clock_decides(load_task("ddp-fashion"), one) is waits
    assert not clock_decides(load_task("ddp-toy"), one), "it has no time target"


def test_what_depends_on_the_clock() -> None:
    assert CLOCKED == ["PERF002", "PERF003", "PERF005"]


@pytest.mark.parametrize("code", CLOCKED)
def test_a_busy_machine_breaks_no_promise(code: str) -> None:
    assert broken_promises(promised(), judged(code)) == []
    assert broken_promises(promised(code), judged(code)) == []
    assert broken_promises(promised(code), judged()) == [f"promised but not found: {code}"]


@pytest.mark.parametrize(
    ("disturbed", "more", "kept"), [(True, (), True), (True, ("“Writes once”",), False), (False, (), False)]
)
def test_what_is_held_for_its_time_alone_breaks_none(
    disturbed: bool, more: tuple[str, ...], kept: bool
) -> None:
    attempt = judged()
    assert isinstance(attempt.evidence, Evidence)
    (title,) = (item.title for item in attempt.task.rubric if item.metric == "time")
    record = replace(attempt.evidence.record, disturbed=disturbed)
    held = replace(attempt.grade, verdict=Verdict.HELD, review_subjects=(f"“{title}”", *more))
    attempt = replace(attempt, evidence=replace(attempt.evidence, record=record), grade=held)
    told = [one for one in broken_promises(promised(), attempt) if one.startswith("verdict")]
    assert (not told) is kept


def test_other_hints_do() -> None:
    assert broken_promises(promised(), judged("DATA006", "PERF002")) == ["found but not promised: DATA006"]


def test_what_is_accepted_earns_100_unless_a_fault_and_its_points_are_promised() -> None:
    without_time, without_io = short_of("time"), short_of("io", "IO002")
    assert broken_promises(promised(), without_time) == [], "time costs what it costs"
    assert broken_promises(promised(points=100), without_time) == []
    (told,) = broken_promises(promised("IO002"), without_io)
    assert told == "accepted, and short of points in: io; promise what it earns with `# points:`"
    assert broken_promises(promised("IO002", points=90), without_io) == []
    assert broken_promises(promised("IO002", points=95), without_io) == ["90 points, promised 95"]
    (told,) = broken_promises(promised(points=90), short_of("io"))
    assert told == "accepted, and short of points in: io, with no finding promised"
