"""Findings as a reader meets them: grouped by what they stand in the way of, with quoted lines, cost and evidence."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from grader.checks.rule import in_words
from grader.model.diagnosis import Diagnosis
from grader.model.finding import Finding, Severity
from grader.model.grade import Grade, ItemState, RubricResult, Verdict
from grader.model.submission import Submission
from grader.report.findings.quote import Quote, quotes
from grader.report.words.wording import EVIDENCES, SEVERITIES, UNWEIGHED, mend_order, points_text, ranks_text

if TYPE_CHECKING:
    from grader.report.findings.fix_changes import FixChange

COSTS = "costs"
"""Among the details of a finding that was only read: what it would cost, as a card tells it."""
_MAX_QUOTES = 4


@dataclass(frozen=True, slots=True)
class Costs:
    """What one finding costs: a sentence for each rubric item, and the points that no finding before it has told."""

    told: tuple[str, ...]
    lost: float


@dataclass(frozen=True, slots=True)
class Card:
    """One finding, ready to be shown.

    Attributes:
        number: 1 for the one to mend first.
        finding: what was seen; submission: in which files.
        title: the rule's name for people, "" where unknown.
        quotes: the first places with their lines; num_more_places: places that are not quoted.
        costs: one sentence per rubric item that lost points to it, or to a fault that follows from it and has no card.
        lost: points of these items that no card before it has told.
        ranks: the ranks concerned in words, "" where none are named.
        seen: how it was seen, sentences.
    """

    number: int
    finding: Finding
    submission: Submission
    title: str
    quotes: tuple[Quote, ...]
    num_more_places: int
    costs: tuple[str, ...]
    lost: float
    ranks: str
    seen: tuple[str, ...]

    @property
    def changes(self) -> tuple[FixChange, ...]:
        """What its fix would change, by file; empty where it has none."""
        # A terminal never asks.
        from grader.report.findings.fix_changes import fix_changes

        return fix_changes(self.finding, self.submission)


@dataclass(frozen=True, slots=True)
class CardGroup:
    """Cards under one heading.

    Attributes:
        severity: what they come to: `ERROR` stands in the way of acceptance, `WARNING` costs points, `HINT` is free.
        heading, lead: for people.
        cards: what to mend first comes first.
        missing: rubric items, as title and reason, that stand in the way of acceptance too and that no card is about;
        not_reached: those of them that the run did not come to.
    """

    severity: Severity
    heading: str
    lead: str
    cards: tuple[Card, ...]
    missing: tuple[tuple[str, str], ...] = ()
    not_reached: tuple[tuple[str, str], ...] = ()

    @property
    def size(self) -> int:
        """How many things stand under the heading."""
        return len(self.cards) + len(self.missing) + len(self.not_reached)


def group_cards(
    findings: Iterable[Finding],
    submission: Submission,
    grade: Grade | None = None,
    titles: Mapping[str, str] | None = None,
    context: int = 2,
    *,
    weighed: bool = True,
) -> tuple[CardGroup, ...]:
    """Groups in the order of what to mend first: what gates acceptance, what costs points, what is free advice.

    Args:
        findings, submission: what was found, and in what.
        grade: what decides about both; None where only the text was read, and each finding's severity has to do.
        titles: of rules, by code. context: lines around a quoted one.
        weighed: whether a severity says what it comes to in a task; else it is that of the rule, and says no more.
    """
    rubric = grade.rubric if grade is not None else ()
    effects = {id(finding): effect_of(finding, grade) for finding in findings}
    ordered = sorted(findings, key=lambda finding: _order(finding, effects[id(finding)], rubric))
    members: dict[Severity, list[Card]] = {severity: [] for severity in Severity}
    told = costs_in_order(ordered, rubric)
    for number, (finding, costs) in enumerate(zip(ordered, told, strict=True), start=1):
        card = _card(number, finding, submission, costs, titles or {}, context)
        members[effects[id(finding)]].append(card)
    missing = _missing(grade, ItemState.LOST, ItemState.PARTLY)
    not_reached = _missing(grade, ItemState.NOT_REACHED)
    groups = []
    for severity, cards in members.items():
        others = (missing, not_reached) if severity is Severity.ERROR else ((), ())
        if cards or any(others):
            heading, lead = SEVERITIES[severity] if weighed else UNWEIGHED[severity]
            cost = round(sum(card.lost for card in cards), 2)
            if severity is Severity.WARNING and cost:
                lead = f"{points_text(cost)} {'point' if cost == 1 else 'points'} in all. {lead}"
            groups.append(CardGroup(severity, heading, lead, tuple(cards), *others))
    return tuple(groups)


def card_of_diagnosis(diagnosis: Diagnosis | None, groups: Iterable[CardGroup]) -> Card | None:
    """The card that quotes the line a diagnosis starts at, and says what to write there."""
    places = {(place.path, place.line) for place in diagnosis.where[:1]} if diagnosis is not None else set()
    return next(
        (
            card
            for group in groups
            for card in group.cards
            if group.severity is Severity.ERROR and card.finding.hint
            if places & {(place.path, place.line) for place in card.finding.where[:2]}
        ),
        None,
    )


def effect_of(finding: Finding, grade: Grade | None) -> Severity:
    """What a finding comes to in a grade; None: as it says itself."""
    if grade is None:
        return finding.severity
    gating: Collection[str] = grade.gating
    if not gating and grade.verdict is not Verdict.ACCEPTED:
        # Grades of an earlier schema do not tell what gated.
        gating = {code for item in grade.rubric if item.must for code in item.codes}
    return weigh(finding, grade.rubric, gating)


def weigh(finding: Finding, rubric: Sequence[RubricResult], gating: Collection[str]) -> Severity:
    """What a finding comes to: a must item's warning gates, and a warning that costs nothing is advice."""
    if finding.severity in (Severity.ERROR, Severity.REVIEW):
        return finding.severity
    if finding.code in gating and finding.severity is Severity.WARNING and not finding.refuted:
        return Severity.ERROR
    if finding.severity is Severity.WARNING and not any(_charged(finding, rubric)):
        return Severity.HINT
    return finding.severity


def _order(finding: Finding, effect: Severity, rubric: Sequence[RubricResult]) -> tuple[int, float, int, int]:
    """What must be mended in the order in which one does it, what costs points by how many."""
    cost = _cost_of({finding.code}, rubric) if effect is Severity.WARNING else 0.0
    severity, family = mend_order(finding)
    return effect.rank, -cost, family, severity


def _cost_of(codes: set[str], rubric: Sequence[RubricResult]) -> float:
    return sum(item.points - item.earned for item in rubric if codes.intersection(item.codes))


def _missing(grade: Grade | None, *states: ItemState) -> tuple[tuple[str, str], ...]:
    """Must items in these states without a finding of their own: a target, or what was never begun.

    Of a run that ended early, or never began, all that follows is missing: what happened there says enough.
    """
    if grade is None or grade.verdict is not Verdict.REJECTED or not grade.phases:
        return ()
    return tuple(
        (item.title, item.reason)
        for item in grade.rubric
        if item.must and item.state in states and not item.codes
    )


def title_of(code: str, page: str) -> str:
    """A rule's title: the first line of its page, without marks of a heading and without the code."""
    first = page.strip().partition("\n")[0].strip("#* \t").strip()
    for lead in (f"{code}: ", f"{code} – ", f"{code} — ", f"{code} - ", f"{code} "):
        first = first.removeprefix(lead)
    return first.rstrip(".")


def _card(
    number: int,
    finding: Finding,
    submission: Submission,
    costs: Costs,
    titles: Mapping[str, str],
    context: int,
) -> Card:
    places = finding.where[:_MAX_QUOTES]
    return Card(
        number=number,
        finding=finding,
        submission=submission,
        title=titles.get(finding.code, ""),
        quotes=quotes(submission, places, context),
        num_more_places=len(finding.where) - len(places),
        costs=costs.told or tuple(finding.details.get(COSTS, ())),
        lost=costs.lost,
        ranks=ranks_text(finding.ranks) if finding.ranks else "",
        seen=tuple(_evidence(finding)),
    )


def costs_as_read(findings: Iterable[Finding], rubric: Sequence[RubricResult]) -> dict[int, tuple[str, ...]]:
    """`id` of each finding that was only read and has its effect as its severity → what it would cost, in sentences."""
    ordered = sorted(findings, key=lambda finding: _order(finding, finding.severity, ()))
    told = costs_in_order(ordered, rubric)
    return {id(one): costs.told for one, costs in zip(ordered, told, strict=True)}


def costs_in_order(ordered: Iterable[Finding], rubric: Sequence[RubricResult]) -> tuple[Costs, ...]:
    """What each finding costs, the one to mend first coming first: points are told once, however many take them."""
    first: dict[str, str] = {}
    found = []
    for finding in ordered:
        told, lost = [], 0.0
        for item, why in _charged(finding, rubric):
            cost = item.points - item.earned
            text = f"−{points_text(cost)} of {points_text(item.points)} points for “{item.title}”"
            if item.id not in first:
                first[item.id] = in_words(finding.code)
                lost += cost
            elif item.earned:
                text = f"has a part in {text}, told with {first[item.id]}"
            else:
                text = f"nothing is left to lose for “{item.title}”, as {first[item.id]} takes all its points"
            told.append(f"{text}{why}")
        found.append(Costs(tuple(told), lost))
    return tuple(found)


def _charged(finding: Finding, rubric: Sequence[RubricResult]) -> Iterable[tuple[RubricResult, str]]:
    """Each item that lost points to it, or to a fault that follows from it, which the end of a sentence says."""
    brought = set(finding.details.get("explains") or ())
    for item in rubric:
        if item.points <= item.earned:
            continue
        # Of several findings of one code an item lost its points to the one that it quotes.
        quotes_one = "answers" in finding.details or item.reason.startswith(f"{finding.code}: ")
        another = quotes_one and finding.message not in item.reason
        if finding.code in item.codes and not another:
            yield item, ""
        elif codes := sorted(brought.intersection(item.codes)):
            yield (
                item,
                f": {' and '.join(map(in_words, codes))} {'follows' if len(codes) == 1 else 'follow'} from this",
            )


def _evidence(finding: Finding) -> Iterable[str]:
    yield EVIDENCES[finding.evidence][1]
    if finding.confirmed:
        yield "A second, independent kind of evidence says the same."
    if finding.refuted:
        yield f"The run showed something else: {finding.refuted}"
