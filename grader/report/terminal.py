"""One attempt in a terminal: what to fix first, with quoted lines, then points, targets and ranks.

Readable at 80 columns, without colour and through a pipe; every text is made visible before it is printed, so that a
learner's output can never steer the terminal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from grader.model.attempt import Attempt
from grader.model.finding import Finding
from grader.model.grade import Grade, State
from grader.model.submission import Submission
from grader.report import cards, endings, wording
from grader.report.audience import Audience, for_audience
from grader.report.gauges import gauges
from grader.report.pages import rule_pages
from grader.report.quote import Quote
from grader.report.safe_text import one_line, visible

_STYLES = {
    "good": "bold green",
    "bad": "bold red",
    "warn": "bold yellow",
    "hint": "bold blue",
    "quiet": "dim",
}
# Three columns before a card's text, seven for a quoted line's number and marker.
_QUOTE_INDENT = 10
_PLAIN_SYMBOLS = {"good": "ok", "bad": "x", "warn": "!", "quiet": "-"}


def print_attempt(
    attempt: Attempt,
    console: Console,
    pages: Mapping[str, str] | None = None,
    audience: Audience = Audience.LEARNER,
) -> None:
    """Prints the whole outcome of one attempt; `pages`: rule pages by code, for their titles (None: all)."""
    grade = for_audience(attempt.grade, audience)
    voice = _Voice(console)
    voice.say(_verdict(grade, voice))
    voice.say(_text(grade.verdict_reason))
    _print_endings(attempt, voice)
    titles = _titles(pages)
    _print_groups(
        cards.group_cards(grade.findings, attempt.submission, grade.rubric, titles, context=0), voice
    )
    voice.heading("Points")
    voice.say(_rubric(grade, voice))
    _print_gauges(attempt, voice)
    rows = endings.rank_rows(attempt)
    if rows:
        voice.heading("Ranks")
        voice.say(_ranks(rows, voice))
    num_verified = sum(check.state is State.VERIFIED for check in grade.checks)
    num_unseen = sum(check.state is State.NOT_OBSERVABLE for check in grade.checks)
    voice.gap()
    if grade.checks:
        voice.say(
            _text(f"{wording.plural(num_verified, 'check')} verified, {num_unseen} not observable.", "dim")
        )
    for reason in grade.review:
        voice.say(_text(f"Held because: {reason}", "yellow"))
    for note in grade.notes:
        voice.say(_text(f"Note: {note}", "dim"))


def print_findings(
    findings: Sequence[Finding],
    submission: Submission,
    console: Console,
    pages: Mapping[str, str] | None = None,
) -> None:
    """Prints findings alone, as `grader lint` shows them, with a closing count."""
    voice = _Voice(console)
    titles = _titles(pages)
    _print_groups(cards.group_cards(findings, submission, (), titles, context=0), voice)
    if findings:
        voice.gap()
    voice.say(_text(f"{one_line(submission.name)}: {wording.findings_text(findings)}.", "bold"))


def _titles(pages: Mapping[str, str] | None) -> dict[str, str]:
    known = rule_pages() if pages is None else pages
    return {code: cards.title_of(code, page) for code, page in known.items()}


class _Voice:
    """A console that knows whether it can show more than ASCII."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.unicode = console.encoding.lower().startswith("utf")
        self.box = box.SIMPLE_HEAD if self.unicode else box.ASCII_DOUBLE_HEAD

    def symbol(self, tone: str) -> str:
        return (wording.SYMBOLS if self.unicode else _PLAIN_SYMBOLS).get(tone, "-")

    def say(self, what: RenderableType, indent: int = 0, hang: int = 0) -> None:
        """Prints text wrapped below an indent (`hang` more from its second line on) without trailing blanks."""
        if not isinstance(what, Text):
            self.console.print(what, highlight=False)
            return
        what.plain = self._encodable(what.plain)
        pad = " " * indent
        for number, line in enumerate(what.wrap(self.console, self.console.width - indent - hang)):
            line.rstrip()
            text = Text(pad + (" " * hang if number else "")).append_text(line)
            self.console.print(text, highlight=False, no_wrap=True, overflow="ignore", crop=False)

    def gap(self) -> None:
        self.console.print()

    def heading(self, text: str, note: str = "") -> None:
        self.gap()
        line = Text(text, style="bold")
        if note:
            line.append(f"  {note}", style="dim not bold")
        self.say(line)

    def table(self, *columns: str, right: Iterable[int] = ()) -> Table:
        table = Table(box=self.box, pad_edge=False, show_edge=False, header_style="dim")
        for index, column in enumerate(columns):
            table.add_column(column, justify="right" if index in set(right) else "left", overflow="fold")
        return table

    def cell(self, text: str, style: str = "") -> Text:
        return Text(self._encodable(one_line(text)), style=style)

    def _encodable(self, text: str) -> str:
        # Same length, so that styles stay where they are.
        return (
            text
            if self.unicode
            else text.encode(self.console.encoding, "replace").decode(self.console.encoding)
        )


def _text(text: str, style: str = "") -> Text:
    """Text with `code` between backquotes set apart; without colour the backquotes stay readable as they are."""
    out = Text(visible(text), style=style)
    out.highlight_regex(r"`[^`\n]+`", "cyan")
    return out


def _verdict(grade: Grade, voice: _Voice) -> Text:
    tone = wording.TONES[grade.verdict]
    line = Text(f"{voice.symbol(tone)} {wording.VERDICTS[grade.verdict]}", style=_STYLES[tone])
    points = f"{wording.points_text(grade.points)} of {wording.points_text(grade.max_points)} points"
    line.append(f"  {points}", style="bold default")
    line.append(f"  {one_line(grade.task)} · {one_line(grade.submission)}", style="dim default")
    return line


def _print_endings(attempt: Attempt, voice: _Voice) -> None:
    waits = endings.wait_rows(attempt)
    if waits:
        voice.heading("Where each rank waits")
        table = voice.table("rank", "waits in", "at", "line")
        for row in waits:
            place = f"{row.place} in {row.function}" if row.function else row.place
            table.add_row(
                str(row.rank),
                voice.cell(row.operation, "bold"),
                voice.cell(place),
                voice.cell(row.source, "cyan"),
            )
        voice.say(table)
        if sentence := endings.wait_sentence(waits):
            voice.say(_text(sentence))
    failures = endings.failure_rows(attempt)
    if failures:
        voice.heading("Which rank failed, and where")
        for failure in failures:
            place = f" at {one_line(failure.place)}" if failure.place else ""
            voice.say(_text(f"rank {failure.rank}{place}: {failure.ending}", "bold"), 2)
            if failure.source:
                voice.say(Text(one_line(failure.source), style="cyan"), 6)
            if failure.type:
                voice.say(Text(visible(f"{failure.type}: {failure.message}"), style="red"), 4)
            for line in failure.tail.splitlines():
                voice.say(Text(visible(line), style="dim"), 4)


def _print_groups(groups: Sequence[cards.Group], voice: _Voice) -> None:
    for group in groups:
        voice.heading(f"{group.heading} ({len(group.cards)})", group.lead)
        for card in group.cards:
            voice.gap()
            voice.say(_card_head(card), hang=3)
            for part in _card(card, voice):
                voice.say(part, 3)


def _card_head(card: cards.Card) -> Text:
    finding = card.finding
    head = Text(f"{card.number}. ", style="dim")
    head.append(one_line(finding.code), style=_STYLES[wording.SEVERITY_TONES[finding.severity]])
    if card.title:
        head.append(f" {one_line(card.title)}", style="bold")
    seen = wording.EVIDENCES[finding.evidence][0] + (", confirmed" if finding.confirmed else "")
    ranks = f"{card.ranks}; " if card.ranks else ""
    head.append(f"  ({ranks}seen by: {seen})", style="dim")
    return head


def _card(card: cards.Card, voice: _Voice) -> Iterable[Text]:
    finding = card.finding
    for quote in card.quotes:
        yield from _quote(quote, voice)
    if card.num_more_places:
        yield _text(f"… and {wording.plural(card.num_more_places, 'more place')}", "dim")
    yield _text(finding.message)
    if finding.hint:
        hint = Text("Write instead: ", style="green")
        hint.append_text(_text(finding.hint))
        yield hint
    if finding.refuted:
        yield _text(f"The run showed something else: {finding.refuted}", "yellow")
    for cost in card.costs:
        yield Text(visible(cost), style="red")


def _quote(quote: Quote, voice: _Voice) -> Iterable[Text]:
    yield Text(one_line(quote.place), style="underline")
    marker = "▸" if voice.unicode else ">"
    for quoted in quote.lines:
        line = Text(
            f"{quoted.number:>4} {marker if quoted.hit else ' '} ", style="red" if quoted.hit else "dim"
        )
        line.append(visible(quoted.text), style="default not dim")
        yield line
        # Hidden characters or a wrapped line would put the caret under something else.
        fits = visible(quoted.text) == quoted.text and len(quoted.text) + _QUOTE_INDENT <= voice.console.width
        if quoted.caret is not None and fits:
            yield Text(" " * (7 + quoted.caret) + "^", style="red")
    if quote.num_left_out:
        yield Text(f"      … and {wording.plural(quote.num_left_out, 'more line')}", style="dim")


def _rubric(grade: Grade, voice: _Voice) -> Table:
    table = voice.table("points", "", "item, and what the evidence says", right=[0])
    for item in grade.rubric:
        tone = wording.STATE_TONES[item.state]
        worth = (
            f"{wording.points_text(item.earned)}/{wording.points_text(item.points)}"
            if item.points
            else "left out"
        )
        state = Text(f"{voice.symbol(tone)} {wording.STATES[item.state]}", style=_STYLES[tone])
        text = voice.cell(item.title, "bold")
        if item.must:
            text.append(" (must)", style="dim not bold")
        text.append("\n")
        text.append_text(voice.cell(item.reason, "not bold"))
        if item.evidence:
            kinds = ", ".join(wording.EVIDENCES[kind][0] for kind in item.evidence)
            text.append(f" [{kinds}]", style="dim not bold")
        table.add_row(worth, state, text)
    return table


def _print_gauges(attempt: Attempt, voice: _Voice) -> None:
    found = gauges(attempt)
    if not found:
        return
    voice.heading("Targets")
    table = voice.table("measured", "value", "target", "", right=[1])
    for gauge in found:
        tone = "quiet" if gauge.met is None else "good" if gauge.met else "bad"
        outcome = Text(f"{voice.symbol(tone)} {gauge.outcome}", style=_STYLES[tone])
        table.add_row(voice.cell(gauge.name), voice.cell(gauge.value), voice.cell(gauge.target), outcome)
    voice.say(table)


def _ranks(rows: Sequence[endings.RankRow], voice: _Voice) -> Table:
    table = voice.table(
        "rank", "ended with", "CPU", "time", "memory", "lines", "steps", "samples", right=range(2, 8)
    )
    for row in rows:
        cells = (row.ending, row.cpu, row.wall, row.memory, row.lines, row.steps, row.samples)
        table.add_row(str(row.rank), *(voice.cell(cell) for cell in cells))
    return table
