"""What a learner reads of a score on hidden data says no more than its step, whichever way it is read."""

from __future__ import annotations

import io
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from grader.judging.attempt import Attempt
from grader.model.grade import Grade
from grader.model.metric import ACCURACY, Direction
from grader.report.audience import Audience, for_audience
from grader.report.exports import gradescope, junit, markdown
from grader.report.html.attempt_page import to_html
from grader.report.json_report import from_json, to_json
from grader.report.score_rounding import coarse
from grader.report.terminal.attempt_text import print_attempt, print_grade
from tests.report import factory

ERRORS = replace(ACCURACY, name="errors", direction=Direction.MIN, readable_step=0.01)
SHARES = st.floats(0, 1)


@given(SHARES, SHARES | st.none())
def test_a_score_is_told_in_steps_and_on_its_own_side_of_the_target(
    value: float, target: float | None
) -> None:
    for metric in (ACCURACY, ERRORS):
        told, step = coarse(metric, value, target), metric.readable_step
        assert metric.gain(told, value) <= step * 1e-5, "it is told for the worse"
        assert metric.gain(value, told) <= 2 * step
        assert told == target or abs(told / step - round(told / step)) < 1e-3
        assert target is None or metric.reached(told, target) is metric.reached(value, target)
        assert coarse(metric, told, target) == told


def test_a_target_is_never_read_as_reached_that_was_missed_by_a_hair() -> None:
    assert coarse(ACCURACY, 0.8599999, 0.86) == 0.855
    assert coarse(ACCURACY, 0.86, 0.86) == 0.86
    assert coarse(ACCURACY, 0.8649, 0.86) == 0.86
    assert coarse(ACCURACY, 0.934, 0.9334) == 0.9334, "the target itself is no secret"
    assert coarse(ERRORS, 0.1400001, 0.14) == 0.15
    assert coarse(ERRORS, 0.137, 0.14) == 0.14


def terminal(attempt: Attempt, audience: Audience) -> str:
    console = Console(file=io.StringIO(), width=200, color_system=None)
    print_attempt(attempt, console, {}, audience)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def from_the_service(grade: Grade) -> str:
    """As the command prints it that fetched a learner's grade."""
    console = Console(file=io.StringIO(), width=200, color_system=None)
    print_grade(from_json(to_json(grade)), factory.submission(), console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_learner_reads_steps_in_every_form_and_staff_read_what_was_measured() -> None:
    attempt = factory.near_miss()
    assert "0.898 on 180 hidden samples" in attempt.grade.verdict_reason, "this would mean nothing otherwise"
    forms = {
        "page": to_html(attempt, {}),
        "json": to_json(attempt.grade),
        "terminal": terminal(attempt, Audience.LEARNER),
        "client": from_the_service(attempt.grade),
        "gradescope": gradescope.of_grade(attempt.grade, Audience.LEARNER),
        "junit": junit.of_grade(attempt.grade, Audience.LEARNER),
        "markdown": markdown.of_grade(attempt.grade, Audience.LEARNER),
    }
    for name, text in forms.items():
        assert "0.895 on 180 hidden samples" in text, name
        for exact in ("0.898", "0.314"):
            assert exact not in text, (name, exact)
        # JUnit has no place for notes.
        assert "told in steps of 0.005" in text or name == "junit", name
    assert "0.898" in to_html(attempt, {}, Audience.STAFF)
    assert "0.898" in terminal(attempt, Audience.STAFF)
    assert '"accuracy": 0.8983' in to_json(attempt.grade, Audience.STAFF)
    assert '"loss": 0.31415' in to_json(attempt.grade, Audience.STAFF)


def test_other_scores_and_other_runs_are_told_as_they_are() -> None:
    told = for_audience(factory.near_miss().grade, Audience.LEARNER)
    assert told.metrics["validation_accuracy"] == 0.936, "what the script could measure itself"
    assert for_audience(told, Audience.LEARNER) == told
    unscored = factory.deadlocked().grade
    assert for_audience(unscored, Audience.LEARNER).notes == unscored.notes
