"""One attempt in a terminal: what to fix first, with quoted lines, then points, targets and ranks.

Readable at 80 columns, without colour and through a pipe; every text is made visible before it is printed, so that a
learner's output can never steer the terminal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from rich.console import Console
from rich.table import Table
from rich.text import Text

from grader.judging.attempt import Attempt
from grader.model.attempt_result import AttemptResult
from grader.model.grade import Grade, State
from grader.model.submission import Submission
from grader.report.audience import Audience, for_audience, staff_only
from grader.report.findings import cards
from grader.report.findings.quote import quotes
from grader.report.safe_text import one_line, visible
from grader.report.terminal.terminal_cards import card_titles, print_groups
from grader.report.terminal.terminal_writer import STYLES, TerminalWriter, quoted, remedy, worded
from grader.report.words import banner, endings, wording
from grader.report.words.gauges import gauges
from grader.report.words.not_reached import not_reached_sentence
from grader.report.words.praise import verified_checks

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
    writer = TerminalWriter(console)
    result = AttemptResult.of(grade)
    writer.write(_verdict(grade, result, writer))
    writer.write(worded(grade.verdict_reason))
    _print_not_reached(grade, writer)
    groups = cards.group_cards(grade.findings, attempt.submission, grade, card_titles(pages), context=0)
    _print_diagnosis(grade, attempt.submission, groups, writer)
    _print_endings(attempt, writer)
    print_groups(groups, writer)
    writer.heading("Points")
    writer.write(_rubric(grade, result, writer))
    _print_gauges(attempt, writer)
    rows = endings.rank_rows(attempt)
    if rows:
        writer.heading("Ranks")
        writer.write(_ranks(rows, writer))
    # As many for staff as for learners.
    told = [check.state for check in grade.checks if not staff_only(check)]
    num_verified = sum(not staff_only(check) for check in verified_checks(grade))
    num_unseen = told.count(State.NOT_OBSERVABLE) + told.count(State.NOT_REACHED)
    writer.gap()
    if grade.checks:
        writer.write(
            worded(f"{wording.plural(num_verified, 'check')} verified, {num_unseen} not observable.", "dim")
        )
    for reason in grade.review:
        writer.write(worded(f"Held because: {reason}", "yellow"))
    for note in grade.notes:
        writer.write(worded(f"Note: {note}", "dim"))


def print_grade(
    grade: Grade, submission: Submission, console: Console, result: AttemptResult | None = None
) -> None:
    """Prints what a grade says by itself, where its evidence lies elsewhere: on the service that judged it.

    `result`: what it counts as there; None: as it was judged.
    """
    writer = TerminalWriter(console)
    result = result or AttemptResult.of(grade)
    writer.write(_verdict(grade, result, writer))
    writer.write(worded(banner.as_judged(grade, result)))
    _print_not_reached(grade, writer)
    groups = cards.group_cards(grade.findings, submission, grade, card_titles(None), context=0)
    if result.otherwise:
        writer.write(worded("What follows is what the grader found; an instructor decided otherwise."))
        # What each group says of acceptance is no longer so.
        groups = tuple(replace(group, lead="") for group in groups)
    _print_diagnosis(grade, submission, groups, writer)
    print_groups(groups, writer)
    if grade.rubric:
        writer.heading("Points")
        writer.write(_rubric(grade, result, writer))
    for note in grade.notes:
        writer.write(worded(f"Note: {note}", "dim"))


def _verdict(grade: Grade, result: AttemptResult, writer: TerminalWriter) -> Text:
    tone = banner.tone(result)
    line = Text(f"{writer.symbol(tone)} {banner.sentence(result)}", style=STYLES[tone])
    line.append(f"  {one_line(grade.task)} · {one_line(grade.submission)}", style="dim default")
    return line


def _print_not_reached(grade: Grade, writer: TerminalWriter) -> None:
    if sentence := not_reached_sentence(grade):
        writer.write(worded(sentence))


def _print_diagnosis(
    grade: Grade, submission: Submission, groups: tuple[cards.CardGroup, ...], writer: TerminalWriter
) -> None:
    """Why the run ended badly, before any table or traceback."""
    found = grade.diagnosis
    if found is None:
        return
    writer.heading("What happened")
    title = Text("", style="bold")
    title.append_text(worded(found.title))
    writer.write(title, 3)
    card = cards.card_of_diagnosis(found, groups)
    if card is None:
        for quote in quotes(submission, found.where[:_MAX_QUOTES], context=0):
            for part in quoted(quote, writer):
                writer.write(part, 3)
    writer.write(worded(found.explanation), 3)
    if card is not None:
        writer.write(worded(f"What to write instead stands at {card.finding.code}, below."), 3)
    elif found.hint:
        writer.write(remedy(found.hint), 3)


def _print_endings(attempt: Attempt, writer: TerminalWriter) -> None:
    waits = endings.wait_rows(attempt)
    if waits:
        writer.heading("Where each rank waits")
        table = writer.table("rank", "waits in", "at", "line")
        for row in waits:
            place = f"{row.place} in {row.function}" if row.function else row.place
            table.add_row(
                row.who.removeprefix("rank "),
                writer.cell(row.operation, "bold"),
                writer.cell(place),
                writer.cell(row.source, "cyan"),
            )
        writer.write(table)
        if (sentence := endings.wait_sentence(waits)) and attempt.grade.diagnosis is None:
            writer.write(worded(sentence))
    failures = endings.failure_rows(attempt)
    if failures:
        writer.heading("Which rank failed, and where")
        for failure in failures:
            place = f" at {one_line(failure.place)}" if failure.place else ""
            writer.write(worded(f"{failure.who}{place}: {failure.ending}", "bold"), 2)
            if failure.source:
                writer.write(Text(one_line(failure.source), style="cyan"), 6)
            if failure.type:
                # Explained above, one line is enough here; the whole text is in the logs and the HTML report.
                told = failure.message if attempt.grade.diagnosis is None else _first_line(failure.message)
                writer.write(Text(visible(f"{failure.type}: {told}"), style="red"), 4)
            for line in failure.tail.splitlines():
                writer.write(Text(visible(line), style="dim"), 4)


def _first_line(text: str) -> str:
    lines = text.strip().splitlines()
    return (
        lines[0][:_LONGEST_LINE] + (" …" if len(lines) > 1 or len(lines[0]) > _LONGEST_LINE else "")
        if lines
        else ""
    )


def _rubric(grade: Grade, result: AttemptResult, writer: TerminalWriter) -> Table:
    table = writer.table("points", "", "item, and what the evidence says", right=[0])
    for item in grade.rubric:
        words, tone = wording.ITEM_STATES[item.state]
        worth = (
            f"{wording.points_text(item.earned)}/{wording.points_text(item.points)}"
            if item.points
            else "left out"
        )
        state = Text(f"{writer.symbol(tone)} {words}", style=STYLES[tone])
        text = writer.cell(item.title, "bold")
        if item.must:
            text.append(" (must)", style="dim not bold")
        text.append("\n")
        text.append_text(writer.cell(item.reason, "not bold"))
        if item.evidence:
            kinds = ", ".join(wording.EVIDENCES[kind][0] for kind in item.evidence)
            text.append(f" [{kinds}]", style="dim not bold")
        table.add_row(worth, state, text)
    total = f"{wording.points_text(grade.points)}/{wording.points_text(grade.max_points)}"
    table.add_row(Text(total, style="bold"), "", writer.cell("together", "bold"))
    for line in banner.sum_lines(result):
        style = "bold" if line.last else ""
        change = line.change.replace(" of ", "/")
        table.add_row(
            Text(change, style=style), "", writer.cell(line.text.lower() if line.last else line.text, style)
        )
    return table


def _print_gauges(attempt: Attempt, writer: TerminalWriter) -> None:
    found = gauges(attempt)
    if not found:
        return
    writer.heading("Targets")
    table = writer.table("measured", "value", "target", "", right=[1])
    for gauge in found:
        tone = "quiet" if gauge.met is None else "good" if gauge.met else "bad"
        outcome = Text(f"{writer.symbol(tone)} {gauge.outcome}", style=STYLES[tone])
        table.add_row(writer.cell(gauge.name), writer.cell(gauge.value), writer.cell(gauge.target), outcome)
    writer.write(table)


def _ranks(rows: Sequence[endings.RankRow], writer: TerminalWriter) -> Table:
    table = writer.table(
        "rank", "ended with", "CPU", "time", "memory", "lines", "steps", "samples", right=range(2, 8)
    )
    for row in rows:
        cells = (row.ending, row.cpu, row.wall, row.memory, row.lines, row.steps, row.samples)
        table.add_row(row.who.removeprefix("rank "), *(writer.cell(cell) for cell in cells))
    return table
