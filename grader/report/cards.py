"""Findings as a reader meets them: grouped by what to mend first, with quoted lines, cost and how each was seen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from grader.model.finding import Finding, Severity
from grader.model.grade import RubricResult
from grader.model.submission import Submission
from grader.report.quote import Quote, quotes
from grader.report.wording import EVIDENCES, SEVERITIES, mend_order, points_text, ranks_text

_MAX_QUOTES = 4


@dataclass(frozen=True, slots=True)
class Card:
    """One finding, ready to be shown.

    Attributes:
        number: 1 for the one to mend first.
        finding: what was seen.
        title: the rule's name for people, "" where unknown.
        quotes: the first places with their lines; num_more_places: places that are not quoted.
        costs: one sentence per rubric item that lost points to it, or to a fault that follows from it and has no card.
        ranks: the ranks concerned in words, "" where none are named.
        seen: how it was seen, sentences.
    """

    number: int
    finding: Finding
    title: str
    quotes: tuple[Quote, ...]
    num_more_places: int
    costs: tuple[str, ...]
    ranks: str
    seen: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CardGroup:
    """Cards of one severity under their heading."""

    severity: Severity
    heading: str
    lead: str
    cards: tuple[Card, ...]


def group_cards(
    findings: Iterable[Finding],
    submission: Submission,
    rubric: Sequence[RubricResult] = (),
    titles: Mapping[str, str] | None = None,
    context: int = 2,
) -> tuple[CardGroup, ...]:
    """Groups in the order of what to mend first; inside a family of rules the given order stays."""
    ordered = sorted(findings, key=mend_order)
    cards = [
        _card(number, finding, submission, rubric, titles or {}, context)
        for number, finding in enumerate(ordered, start=1)
    ]
    groups = []
    for severity in Severity:
        members = tuple(card for card in cards if card.finding.severity is severity)
        if members:
            groups.append(CardGroup(severity, *SEVERITIES[severity], members))
    return tuple(groups)


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
    rubric: Sequence[RubricResult],
    titles: Mapping[str, str],
    context: int,
) -> Card:
    places = finding.where[:_MAX_QUOTES]
    return Card(
        number=number,
        finding=finding,
        title=titles.get(finding.code, ""),
        quotes=quotes(submission, places, context),
        num_more_places=len(finding.where) - len(places),
        costs=tuple(_costs(finding, rubric)),
        ranks=ranks_text(finding.ranks) if finding.ranks else "",
        seen=tuple(_seen(finding)),
    )


def _costs(finding: Finding, rubric: Sequence[RubricResult]) -> Iterable[str]:
    brought = set(finding.details.get("explains") or ())
    for item in rubric:
        lost = item.points - item.earned
        # A task's answers about files share one code: an item lost its points to the one that it quotes.
        another = "answers" in finding.details and finding.message not in item.reason
        cost = f"−{points_text(lost)} of {points_text(item.points)} points for “{item.title}”"
        if finding.code in item.codes and lost > 0 and not another:
            yield cost
        elif lost > 0 and (codes := sorted(brought.intersection(item.codes))):
            yield f"{cost}: {' and '.join(codes)} {'follows' if len(codes) == 1 else 'follow'} from this"


def _seen(finding: Finding) -> Iterable[str]:
    yield EVIDENCES[finding.evidence][1]
    if finding.confirmed:
        yield "A second, independent kind of evidence says the same."
    if finding.refuted:
        yield f"The run showed something else: {finding.refuted}"
