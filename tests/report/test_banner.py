"""The one sentence about an attempt: what counts, and why it is not what was judged."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from grader.model.attempt_result import AttemptResult
from grader.model.grade import Verdict
from grader.report.words.banner import sentence, tone

ACCEPTED, REJECTED, HELD = Verdict.ACCEPTED, Verdict.REJECTED, Verdict.HELD
MORNING = datetime(2030, 3, 1, 8, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (AttemptResult(ACCEPTED, 100, 100, ACCEPTED, 100), "Accepted: 100 of 100"),
        (AttemptResult(REJECTED, 36.67, 100, REJECTED, 36.67), "Not accepted yet: 36.67 of 100"),
        (
            AttemptResult(ACCEPTED, 81, 100, ACCEPTED, 90, 1, 0.1),
            "Accepted: 81 of 100 (judged 90; 1 day late, −10 %)",
        ),
        (AttemptResult(ACCEPTED, 90, 100, ACCEPTED, 90, 2), "Accepted: 90 of 100 (2 days late)"),
        (
            AttemptResult(ACCEPTED, 92, 100, ACCEPTED, 76.67, 2, 0.1, decided=True),
            "Accepted by an instructor: 92 of 100 (judged 76.67; 2 days late, −10 %)",
        ),
        (
            AttemptResult(REJECTED, 10, 100, ACCEPTED, 100, decided=True),
            "Not accepted by an instructor: 10 of 100 (judged accepted, 100)",
        ),
        (
            AttemptResult(ACCEPTED, 100, 100, HELD, 100, decided=True),
            "Accepted by an instructor: 100 of 100 (judged 100)",
        ),
        (
            AttemptResult(HELD, 0, 100, HELD, 66.7, held_since=MORNING),
            "With the instructors since 1 Mar 2030, 08:05 UTC: it counts as nothing until they decide",
        ),
        (
            AttemptResult(REJECTED, 60, 90, REJECTED, 60, earlier_scale=True),
            "Not accepted yet: 60 of 90 (on an earlier scale)",
        ),
        (
            AttemptResult(ACCEPTED, 100, 100, ACCEPTED, 100, earlier_scale=True),
            "Accepted: 100 of 100 (on an earlier scale)",
        ),
        (
            AttemptResult(Verdict.JUDGE_ERROR, 0, 100, Verdict.JUDGE_ERROR, 0),
            "The judge failed, not your script: it does not count",
        ),
    ],
)
def test_what_is_said(result: AttemptResult, said: str) -> None:
    assert sentence(result) == said


def test_an_instructors_decision_sets_the_colour() -> None:
    assert tone(AttemptResult(ACCEPTED, 92, 100, REJECTED, 76.67, decided=True)) == "good"
    assert tone(AttemptResult(HELD, 0, 100, HELD, 60, held_since=MORNING)) == "warn"
