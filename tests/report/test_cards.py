"""A finding's card says what it costs: its own points, and those of the faults that fold into it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from grader.model.finding import EvidenceKind, Finding, Severity
from grader.model.grade import ItemState, RubricResult, Verdict
from grader.report.findings.cards import group_cards
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


@pytest.mark.parametrize(
    ("earned", "said"),
    [
        (0, "nothing is left to lose for “Saved”, as “Every rank writes the same file” takes all its points"),
        (10, "has a part in −5 of 15 points for “Saved”, told with “Every rank writes the same file”"),
    ],
)
def test_points_are_lost_once_however_many_findings_take_them(earned: float, said: str) -> None:
    found = [
        Finding("IO001", Severity.ERROR, EvidenceKind.TRACE, "Both write."),
        Finding("IO002", Severity.WARNING, EvidenceKind.TRACE, "Both print."),
    ]
    rubric = (replace(item("Saved", earned, "IO001", "IO002"), must=False), item("Asked", 11, "DATA014"))
    costly = Finding("DATA014", Severity.WARNING, EvidenceKind.TRACE, "A part of each batch.")
    judged = replace(factory.rejected().grade, rubric=rubric, gating=("IO001",))
    must, costs = group_cards([*found, costly], factory.submission(), judged)
    assert must.cards[0].costs == (f"−{15 - earned} of 15 points for “Saved”",)
    assert {card.finding.code: card.costs for card in costs.cards} == {
        "IO002": (said,),
        "DATA014": ("−4 of 15 points for “Asked”",),
    }
    assert costs.lead.startswith("4 points in all.")
