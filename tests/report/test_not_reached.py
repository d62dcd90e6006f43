"""What an early end cost is said once, in every report of it, and of no other run."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from grader.model.grade import ItemState, Verdict
from grader.report.audience import Audience
from grader.report.exports import markdown
from grader.report.html.attempt_page import to_html
from grader.report.terminal.attempt_text import print_attempt, print_grade
from grader.report.words.not_reached import not_reached_sentence
from tests.report import factory

SENTENCE = (
    "30 of 100 points were not reached, because the ranks stood still before “Accuracy on unseen data” "
    "and 1 item after it."
)


def test_the_sentence_names_points_cause_and_the_first_item() -> None:
    assert not_reached_sentence(factory.deadlocked().grade) == SENTENCE


def test_what_was_seen_in_part_counts_with_its_rest_and_what_was_wrong_does_not() -> None:
    grade = replace(factory.deadlocked().grade, verdict=Verdict.CRASHED)
    partly = tuple(
        replace(item, earned=15.0, state=ItemState.PARTLY) if item.id == "gradients" else item
        for item in grade.rubric
    )
    assert not_reached_sentence(replace(grade, rubric=partly)) == (
        "40 of 100 points were not reached, because the script crashed before “Gradients are averaged over the ranks” "
        "and 2 items after it."
    )
    found = tuple(replace(item, codes=("GRAD001",)) if item.id == "gradients" else item for item in partly)
    assert "30 of 100 points" in not_reached_sentence(replace(grade, rubric=found))
    last = tuple(item for item in grade.rubric if item.id != "time")
    assert not_reached_sentence(replace(grade, rubric=last)).endswith("before “Accuracy on unseen data”.")


@pytest.mark.parametrize("verdict", [Verdict.REJECTED, Verdict.HELD, Verdict.JUDGE_ERROR, Verdict.ACCEPTED])
def test_a_run_that_did_not_end_early_has_no_such_sentence(verdict: Verdict) -> None:
    assert not_reached_sentence(replace(factory.deadlocked().grade, verdict=verdict)) == ""


def test_every_report_of_an_early_end_says_it_once() -> None:
    attempt = factory.deadlocked()
    console = Console(file=io.StringIO(), width=200, color_system=None)
    print_attempt(attempt, console, factory.PAGES)
    alone = Console(file=io.StringIO(), width=200, color_system=None)
    print_grade(attempt.grade, attempt.submission, alone)
    assert isinstance(console.file, io.StringIO)
    assert isinstance(alone.file, io.StringIO)
    for text in (
        console.file.getvalue(),
        alone.file.getvalue(),
        to_html(attempt, factory.PAGES),
        markdown.of_grade(attempt.grade, Audience.LEARNER),
    ):
        assert text.count(SENTENCE) == 1
