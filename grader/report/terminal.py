"""One attempt in a terminal: what to fix first, with quoted lines, then points, targets and ranks.

Readable at 80 columns, without colour and through a pipe; every text is made visible before it is printed, so that a
learner's output can never steer the terminal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from rich.console import Console
from rich.table import Table
from rich.text import Text

from grader.judging.attempt import Attempt
from grader.model.attempt_result import AttemptResult
from grader.model.finding import Finding
from grader.model.grade import Grade, State
from grader.model.submission import Submission
from grader.report import banner, cards, endings, wording
from grader.report.audience import Audience, for_audience, staff_only
from grader.report.gauges import gauges
from grader.report.not_reached import not_reached_sentence
from grader.report.pages import rule_pages
from grader.report.quote import quotes
from grader.report.safe_text import one_line, visible
from grader.report.terminal_writer import STYLES, Voice, quoted, remedy, worded

_MAX_QUOTES, _LONGEST_LINE = 4, 200


def print_attempt(
    attempt: Attempt,
    console: Console,
    pages: Mapping[str, str] | None = None,
    audience: Audience = Audience.LEARNER,
) -> None:
    """Prints the whole outcome of one attempt; `pages`: rule pages by code, for their titles (None: all)."""
    grade = for_audience(attempt.grade, audience)
    attempt = replace(attempt, grade=grade)
    voice = Voice(console)
    result = AttemptResult.of(grade)
    voice.say(_verdict(grade, result, voice))
    voice.say(worded(grade.verdict_reason))
    _print_not_reached(grade, voice)
    _print_diagnosis(grade, attempt.submission, voice)
    _print_endings(attempt, voice)
    titles = _titles(pages)
    _print_groups(cards.group_cards(grade.findings, attempt.submission, grade, titles, context=0), voice)
    voice.heading("Points")
    voice.say(_rubric(grade, result, voice))
    _print_gauges(attempt, voice)
    rows = endings.rank_rows(attempt)
    if rows:
        voice.heading("Ranks")
        voice.say(_ranks(rows, voice))
    # As many for staff as for learners.
    told = [check.state for check in grade.checks if not staff_only(check)]
    num_verified = told.count(State.VERIFIED)
    num_unseen = told.count(State.NOT_OBSERVABLE) + told.count(State.NOT_REACHED)
    voice.gap()
    if grade.checks:
        voice.say(
            worded(f"{wording.plural(num_verified, 'check')} verified, {num_unseen} not observable.", "dim")
        )
    for reason in grade.review:
        voice.say(worded(f"Held because: {reason}", "yellow"))
    for note in grade.notes:
        voice.say(worded(f"Note: {note}", "dim"))


def print_grade(
    grade: Grade, submission: Submission, console: Console, result: AttemptResult | None = None
) -> None:
    """Prints what a grade says by itself, where its evidence lies elsewhere: on the service that judged it.

    `result`: what it counts as there; None: as it was judged.
    """
    voice = Voice(console)
    result = result or AttemptResult.of(grade)
    voice.say(_verdict(grade, result, voice))
    judged = "" if result.as_judged else f"As judged: {wording.HEADLINES[grade.verdict]}. "
    voice.say(worded(f"{judged}{grade.verdict_reason}"))
    _print_not_reached(grade, voice)
    titles = _titles(None)
    groups = cards.group_cards(grade.findings, submission, grade, titles, context=0)
    if result.otherwise:
        voice.say(worded("What follows is what the grader found; an instructor decided otherwise."))
        # What each group says of acceptance is no longer so.
        groups = tuple(replace(group, lead="") for group in groups)
    _print_diagnosis(grade, submission, voice)
    _print_groups(groups, voice)
    if grade.rubric:
        voice.heading("Points")
        voice.say(_rubric(grade, result, voice))
    for note in grade.notes:
        voice.say(worded(f"Note: {note}", "dim"))


def print_findings(
    findings: Sequence[Finding],
    submission: Submission,
    console: Console,
    pages: Mapping[str, str] | None = None,
) -> None:
    """Prints findings alone, as `grader lint` shows them, with a closing count that is no praise where it is none."""
    voice = Voice(console)
    titles = _titles(pages)
    _print_groups(cards.group_cards(findings, submission, None, titles, context=0), voice)
    if findings:
        voice.gap()
    told = wording.findings_text(findings)
    if not findings:
        told += " in the text; what the script does, only a run shows"
    voice.say(worded(f"{one_line(submission.name)}: {told}.", "bold"))


def _titles(pages: Mapping[str, str] | None) -> dict[str, str]:
    known = rule_pages() if pages is None else pages
    return {code: cards.title_of(code, page) for code, page in known.items()}


def _verdict(grade: Grade, result: AttemptResult, voice: Voice) -> Text:
    tone = banner.tone(result)
    line = Text(f"{voice.symbol(tone)} {banner.sentence(result)}", style=STYLES[tone])
    line.append(f"  {one_line(grade.task)} · {one_line(grade.submission)}", style="dim default")
    return line


def _print_not_reached(grade: Grade, voice: Voice) -> None:
    if sentence := not_reached_sentence(grade):
        voice.say(worded(sentence))


def _print_diagnosis(grade: Grade, submission: Submission, voice: Voice) -> None:
    """Why the run ended badly, before any table or traceback."""
    found = grade.diagnosis
    if found is None:
        return
    voice.heading("What happened")
    title = Text("", style="bold")
    title.append_text(worded(found.title))
    voice.say(title, 3)
    for quote in quotes(submission, found.where[:_MAX_QUOTES], context=0):
        for part in quoted(quote, voice):
            voice.say(part, 3)
    voice.say(worded(found.explanation), 3)
    if found.hint:
        voice.say(remedy(found.hint), 3)


def _print_endings(attempt: Attempt, voice: Voice) -> None:
    waits = endings.wait_rows(attempt)
    if waits:
        voice.heading("Where each rank waits")
        table = voice.table("rank", "waits in", "at", "line")
        for row in waits:
            place = f"{row.place} in {row.function}" if row.function else row.place
            table.add_row(
                row.who.removeprefix("rank "),
                voice.cell(row.operation, "bold"),
                voice.cell(place),
                voice.cell(row.source, "cyan"),
            )
        voice.say(table)
        if (sentence := endings.wait_sentence(waits)) and attempt.grade.diagnosis is None:
            voice.say(worded(sentence))
    failures = endings.failure_rows(attempt)
    if failures:
        voice.heading("Which rank failed, and where")
        for failure in failures:
            place = f" at {one_line(failure.place)}" if failure.place else ""
            voice.say(worded(f"{failure.who}{place}: {failure.ending}", "bold"), 2)
            if failure.source:
                voice.say(Text(one_line(failure.source), style="cyan"), 6)
            if failure.type:
                # Explained above, one line is enough here; the whole text is in the logs and the HTML report.
                told = failure.message if attempt.grade.diagnosis is None else _first_line(failure.message)
                voice.say(Text(visible(f"{failure.type}: {told}"), style="red"), 4)
            for line in failure.tail.splitlines():
                voice.say(Text(visible(line), style="dim"), 4)


def _first_line(text: str) -> str:
    lines = text.strip().splitlines()
    return (
        lines[0][:_LONGEST_LINE] + (" …" if len(lines) > 1 or len(lines[0]) > _LONGEST_LINE else "")
        if lines
        else ""
    )


def _print_groups(groups: Sequence[cards.CardGroup], voice: Voice) -> None:
    for group in groups:
        voice.heading(f"{group.heading} ({len(group.cards) + len(group.missing)})", group.lead)
        for card in group.cards:
            voice.gap()
            voice.say(_card_head(card), hang=3)
            for part in _card(card, voice):
                voice.say(part, 3)
        for title, reason in group.missing:
            voice.gap()
            voice.say(voice.cell(title, "bold"), hang=3)
            voice.say(worded(reason), 3)


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


def _card(card: cards.Card, voice: Voice) -> Iterable[Text]:
    finding = card.finding
    for quote in card.quotes:
        yield from quoted(quote, voice)
    if card.num_more_places:
        yield worded(f"… and {wording.plural(card.num_more_places, 'more place')}", "dim")
    yield worded(finding.message)
    if finding.hint:
        yield remedy(finding.hint)
    if finding.refuted:
        yield worded(f"The run showed something else: {finding.refuted}", "yellow")
    for cost in card.costs:
        yield Text(visible(cost), style="red")


def _rubric(grade: Grade, result: AttemptResult, voice: Voice) -> Table:
    table = voice.table("points", "", "item, and what the evidence says", right=[0])
    for item in grade.rubric:
        words, tone = wording.ITEM_STATES[item.state]
        worth = (
            f"{wording.points_text(item.earned)}/{wording.points_text(item.points)}"
            if item.points
            else "left out"
        )
        state = Text(f"{voice.symbol(tone)} {words}", style=STYLES[tone])
        text = voice.cell(item.title, "bold")
        if item.must:
            text.append(" (must)", style="dim not bold")
        text.append("\n")
        text.append_text(voice.cell(item.reason, "not bold"))
        if item.evidence:
            kinds = ", ".join(wording.EVIDENCES[kind][0] for kind in item.evidence)
            text.append(f" [{kinds}]", style="dim not bold")
        table.add_row(worth, state, text)
    total = f"{wording.points_text(grade.points)}/{wording.points_text(grade.max_points)}"
    table.add_row(Text(total, style="bold"), "", voice.cell("together", "bold"))
    for line in banner.sum_lines(result):
        style = "bold" if line.last else ""
        change = line.change.replace(" of ", "/")
        table.add_row(
            Text(change, style=style), "", voice.cell(line.text.lower() if line.last else line.text, style)
        )
    return table


def _print_gauges(attempt: Attempt, voice: Voice) -> None:
    found = gauges(attempt)
    if not found:
        return
    voice.heading("Targets")
    table = voice.table("measured", "value", "target", "", right=[1])
    for gauge in found:
        tone = "quiet" if gauge.met is None else "good" if gauge.met else "bad"
        outcome = Text(f"{voice.symbol(tone)} {gauge.outcome}", style=STYLES[tone])
        table.add_row(voice.cell(gauge.name), voice.cell(gauge.value), voice.cell(gauge.target), outcome)
    voice.say(table)


def _ranks(rows: Sequence[endings.RankRow], voice: Voice) -> Table:
    table = voice.table(
        "rank", "ended with", "CPU", "time", "memory", "lines", "steps", "samples", right=range(2, 8)
    )
    for row in rows:
        cells = (row.ending, row.cpu, row.wall, row.memory, row.lines, row.steps, row.samples)
        table.add_row(row.who.removeprefix("rank "), *(voice.cell(cell) for cell in cells))
    return table
