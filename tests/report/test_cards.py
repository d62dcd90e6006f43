"""A finding's card says what it costs: its own points, and those of the faults that fold into it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from grader.model.finding import EvidenceKind, Finding, Severity
from grader.model.grade import ItemState, RubricResult, Verdict
from grader.report.cards import group_cards
from tests.report import factory


def item(title: str, earned: float, *codes: str) -> RubricResult:
    state = ItemState.LOST if codes else ItemState.EARNED
    return RubricResult(title, title, True, 15.0, 15.0, earned, state, (EvidenceKind.TRACE,), "", codes)


LOST = "−15 of 15 points for “Equal”: "
GRADIENTS = "“Ranks step with gradients that were never averaged”"


@pytest.mark.parametrize(
    ("codes", "said"),
    [
        (["GRAD001"], f"{LOST}{GRADIENTS} follows from this"),
        (
            ["GRAD001", "GRAD007"],
            f"{LOST}{GRADIENTS} and “Replicas end with different parameters” follow from this",
        ),
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
    judged = replace(factory.accepted().grade, rubric=rubric)
    (group,) = group_cards([found], factory.submission(), judged)
    assert group.cards[0].costs == ("−10 of 15 points for “Joined”", said)


@pytest.mark.parametrize(
    ("verdict", "effect"), [(Verdict.ACCEPTED, Severity.WARNING), (Verdict.REJECTED, Severity.ERROR)]
)
def test_a_warning_of_a_must_item_stands_in_nobodys_way_who_is_accepted(
    verdict: Verdict, effect: Severity
) -> None:
    found = Finding("GRAD007", Severity.WARNING, EvidenceKind.TRACE, "Seeded by rank.")
    judged = replace(factory.accepted().grade, verdict=verdict, rubric=(item("Equal", 12, "GRAD007"),))
    (group,) = group_cards([found], factory.submission(), judged)
    assert group.severity is effect
