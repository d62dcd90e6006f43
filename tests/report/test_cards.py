"""A finding's card says what it costs: its own points, and those of the faults that fold into it."""

from __future__ import annotations

import pytest

from grader.model.finding import EvidenceKind, Finding, Severity
from grader.model.grade import RubricResult, State
from grader.report.cards import group_cards
from tests.report import factory


def item(title: str, earned: float, *codes: str) -> RubricResult:
    state = State.CONTRADICTED if codes else State.VERIFIED
    return RubricResult(title, title, True, 15.0, 15.0, earned, state, (EvidenceKind.TRACE,), "", codes)


@pytest.mark.parametrize(
    ("codes", "said"),
    [
        (["GRAD001"], "−15 of 15 points for “Equal”: GRAD001 follows from this"),
        (["GRAD001", "GRAD007"], "−15 of 15 points for “Equal”: GRAD001 and GRAD007 follow from this"),
    ],
)
def test_what_follows_from_a_fault_is_counted_on_its_card(codes: list[str], said: str) -> None:
    found = Finding(
        "DIST001", Severity.ERROR, EvidenceKind.TRACE, "No group.", details={"explains": [*codes, "OPT003"]}
    )
    rubric = (
        item("Joined", 5, "DIST001"),
        item("Equal", 0, *codes),
        item("Dealt", 0, "DATA001"),
        item("Even", 15),
    )
    (group,) = group_cards([found], factory.submission(), rubric)
    assert group.cards[0].costs == ("−10 of 15 points for “Joined”", said)
