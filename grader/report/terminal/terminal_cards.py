"""Findings in a terminal, as cards with quoted lines: below a grade, or alone where only the text was read.

Apart from `terminal`, which shows whole attempts: a linter would wait for all that these are made of.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rich.console import Console
from rich.text import Text

from grader.model.finding import Finding
from grader.model.submission import Submission
from grader.report.findings import cards
from grader.report.html.explanation_pages import rule_pages
from grader.report.safe_text import one_line, visible
from grader.report.terminal.terminal_writer import STYLES, TerminalWriter, quoted, remedy, worded
from grader.report.words import wording


def print_findings(
    findings: Sequence[Finding],
    submission: Submission,
    console: Console,
    pages: Mapping[str, str] | None = None,
    *,
    weighed: bool = True,
) -> None:
    """Prints findings alone, as `grader lint` shows them, with a closing count that is no praise where it is none.

    `weighed`: as of `group_cards`.
    """
    writer = TerminalWriter(console)
    titles = card_titles(pages)
    groups = cards.group_cards(findings, submission, None, titles, context=0, weighed=weighed)
    print_groups(groups, writer)
    if findings:
        writer.gap()
    told = wording.findings_text(findings)
    if not findings:
        told += " in the text; what the script does, only a run shows"
    writer.write(worded(f"{one_line(submission.name)}: {told}.", "bold"))


def card_titles(pages: Mapping[str, str] | None) -> dict[str, str]:
    """What a card is headed by, by code; `pages`: None for all that there are."""
    known = rule_pages() if pages is None else pages
    return {code: cards.title_of(code, page) for code, page in known.items()}


def print_groups(groups: Sequence[cards.CardGroup], writer: TerminalWriter) -> None:
    """Prints cards under the headings of their groups."""
    for group in groups:
        writer.heading(f"{group.heading} ({group.size})", group.lead)
        for card in group.cards:
            writer.gap()
            writer.write(_card_head(card), hang=3)
            for part in _card(card, writer):
                writer.write(part, 3)
        for title, reason in (*group.missing, *group.not_reached):
            writer.gap()
            writer.write(writer.cell(title, "bold"), hang=3)
            writer.write(worded(reason), 3)


def _card_head(card: cards.Card) -> Text:
    finding = card.finding
    head = Text(f"{card.number}. ", style="dim")
    head.append(one_line(finding.code), style=STYLES[wording.SEVERITY_TONES[finding.severity]])
    if card.title:
        head.append(f" {one_line(card.title)}", style="bold")
    seen = wording.EVIDENCES[finding.evidence][0] + (", confirmed" if finding.confirmed else "")
    ranks = f"{card.ranks}; " if card.ranks else ""
    head.append(f"  ({ranks}seen by: {seen})", style="dim")
    return head


def _card(card: cards.Card, writer: TerminalWriter) -> Iterable[Text]:
    finding = card.finding
    for quote in card.quotes:
        yield from quoted(quote, writer)
    if card.num_more_places:
        yield worded(f"… and {wording.plural(card.num_more_places, 'more place')}", "dim")
    yield worded(finding.message)
    if finding.hint:
        yield remedy(finding.hint)
    if finding.refuted:
        yield worded(f"The run showed something else: {finding.refuted}", "yellow")
    for cost in card.costs:
        yield Text(visible(cost), style="red")
