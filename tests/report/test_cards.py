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


def test_what_a_run_did_not_come_to_stands_together_below_what_is_wrong() -> None:
    rubric = (
        item("Joined", 0, "DIST001"),
        *(
            replace(item(name, 0), state=ItemState.NOT_REACHED, reason="First join.")
            for name in ("Even", "Saved")
        ),
        replace(item("Accurate", 0), state=ItemState.LOST, reason="0.1 is below 0.9."),
    )
    judged = replace(factory.rejected().grade, rubric=rubric, findings=(), gating=("DIST001",))
    found = Finding("DIST001", Severity.ERROR, EvidenceKind.TRACE, "No group.")
    (group,) = group_cards([found], factory.submission(), judged)
    assert group.missing == (("Accurate", "0.1 is below 0.9."),)
    assert group.not_reached == (("Even", "First join."), ("Saved", "First join."))
    assert group.size == 4
