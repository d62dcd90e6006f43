"""One attempt as one HTML file that needs nothing else: no script, no font, no image from anywhere.

Everything is escaped by the template engine; what a learner's script wrote is made visible first, so that control and
bidirectional characters neither act nor hide. The page says what the grade says and decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from jinja2 import Environment
from markupsafe import Markup

from grader.judging.attempt import Attempt
from grader.model.attempt_result import AttemptResult
from grader.model.diagnosis import Diagnosis
from grader.model.finding import Finding, Severity
from grader.model.grade import CheckResult, Grade, ItemState, State, Verdict
from grader.model.notebook_lines import by_cell, shown_number
from grader.model.submission import Submission
from grader.report.audience import Audience, for_audience, staff_only
from grader.report.findings import cards
from grader.report.findings.quote import quotes
from grader.report.html.explanation_pages import rule_pages
from grader.report.html.highlight import highlighted
from grader.report.html.markdown_html import page_html
from grader.report.html.page_engine import page_engine
from grader.report.plots.report_plots import Plot, draw_plots
from grader.report.words import banner, endings, wording
from grader.report.words.facts import Fact, details_facts, environment_facts, phase_bars
from grader.report.words.gauges import gauges
from grader.report.words.not_reached import not_reached_sentence
from grader.report.words.praise import praise, verified_checks

_MAX_SOURCE_LINES = 3000
_MAX_QUOTES = 4
_TALLIES = {
    Severity.ERROR: ("must be fixed", "must be fixed"),
    Severity.WARNING: ("costs points", "cost points"),
    Severity.HINT: ("good to know", "good to know"),
}
"""The groups' headings behind a number: of one, of several."""
_LOG_HEAD, _LOG_TAIL, _LOG_WIDTH = 100, 300, 2000


@dataclass(frozen=True, slots=True)
class Listing:
    """One file: (line number, number shown, highlighted line, cards that point at it); lines left out at its end."""

    path: str
    lines: tuple[tuple[int, int, Markup, tuple[cards.Card, ...]], ...]
    num_left_out: int
    open: bool


@dataclass(frozen=True, slots=True)
class Log:
    """One output stream of one rank, shortened in the middle."""

    rank: int
    stream: str
    text: str
    num_lines: int


def to_html(
    attempt: Attempt,
    pages: Mapping[str, str] | None = None,
    audience: Audience = Audience.LEARNER,
    plots: tuple[Plot, ...] | None = None,
) -> str:
    """The whole report of one attempt.

    Args:
        attempt: what was judged and all its evidence.
        pages: rule pages in Markdown by code, shown folded beside the findings; None: those of all rules.
        audience: learners do not get review findings, nor scores to the digit.
        plots: those of this attempt, where they are drawn already; None: they are drawn now.
    """
    if plots is None:
        plots = plots_of(attempt)
    pages = rule_pages() if pages is None else pages
    grade = for_audience(attempt.grade, audience)
    attempt = replace(attempt, grade=grade)
    titles = {code: cards.title_of(code, text) for code, text in pages.items()}
    groups = cards.group_cards(grade.findings, attempt.submission, grade, titles)
    waits, failures = endings.wait_rows(attempt), endings.failure_rows(attempt)
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            attempt=attempt,
            grade=grade,
            task=attempt.task,
            tone=wording.TONES[grade.verdict],
            headline=banner.sentence(AttemptResult.of(grade)),
            groups=groups,
            fix_title="What could be better" if grade.verdict is Verdict.ACCEPTED else "What to fix first",
            tally=_tally(grade, groups),
            not_reached=not_reached_sentence(grade),
            next_step=_next_step(grade, groups, failures),
            pages={
                code: page_html(_below_title(pages[code]), top=4)
                for code in {finding.code for finding in grade.findings} & pages.keys()
            },
            titles=titles,
            gauges=gauges(attempt),
            diagnosis=grade.diagnosis,
            diagnosis_card=cards.card_of_diagnosis(grade.diagnosis, groups),
            diagnosis_quotes=quotes(attempt.submission, grade.diagnosis.where[:_MAX_QUOTES], 1)
            if grade.diagnosis
            else (),
            stopped={(p.path, p.line) for p in grade.diagnosis.where} if grade.diagnosis else set(),
            waits=waits,
            wait_sentence=endings.wait_sentence(waits),
            failures=failures,
            ranks=endings.rank_rows(attempt),
            ending_reason=by_cell(attempt.record.ending_reason, attempt.submission) if attempt.record else "",
            left_out=sum(item.state is ItemState.NOT_SHOWN for item in grade.rubric),
            right=praise(verified_checks(grade), titles),
            unseen=_checks(grade, State.NOT_OBSERVABLE) + _checks(grade, State.NOT_REACHED),
            plots=plots,
            phases=phase_bars(grade.phases),
            listings=tuple(_listings(attempt, groups)),
            logs=tuple(_logs(attempt.logs)),
            environment=environment_facts(grade.environment),
            staff=audience == Audience.STAFF,
        )
    )


def plots_of(attempt: Attempt) -> tuple[Plot, ...]:
    """The plots of a report; the same for every audience, and most of the time that a report takes."""
    return draw_plots(attempt) if attempt.record is not None else ()


@cache
def _environment() -> Environment:
    environment = page_engine(Path(__file__).parent.parent / "templates")
    environment.filters |= {"safe_svg": Markup, "details": _details}
    environment.globals |= {"ITEM_STATES": wording.ITEM_STATES, "RUNTIMES": wording.RUNTIMES}
    return environment


def _details(told: Finding | Diagnosis) -> tuple[Fact, ...]:
    return details_facts(told.details)


def _next_step(
    grade: Grade, groups: tuple[cards.CardGroup, ...], failures: tuple[endings.FailureRow, ...]
) -> str:
    """One sentence: what to do next."""
    first = next((card for group in groups for card in group.cards), None)
    if grade.verdict is Verdict.JUDGE_ERROR:
        return "Nothing to do on your side: hand it in again, the attempt does not count."
    if grade.verdict is Verdict.HELD:
        return ""
    if grade.verdict is Verdict.ACCEPTED:
        costly = any(group.severity is not Severity.HINT for group in groups if group.cards)
        advice = " What costs points stands below." if costly else " The advice below is free."
        return "There is nothing that you must change." + (advice if first else "")
    if grade.diagnosis is not None:
        for cause in grade.diagnosis.where[:1]:
            return f"Start at `{cause}`: what happened there is explained first."
        return "What happened is explained first, right below."
    if first is None and failures and failures[0].place:
        return f"Start at `{failures[0].place}`, where {failures[0].who} failed."
    if first is None:
        return "Look at the table of the ranks and at their output below."
    where = first.finding.location
    place = f" at `{where}`" if where else ""
    return f"Start with {first.finding.code}{place}, the first card below."


def _below_title(text: str) -> str:
    lines = text.strip().split("\n")
    rest = lines[1:]
    # An underlined title takes its line with it.
    while rest and (not rest[0].strip() or set(rest[0].strip()) <= {"=", "-"}):
        rest = rest[1:]
    return "\n".join(rest)


def _tally(grade: Grade, groups: tuple[cards.CardGroup, ...]) -> str:
    """What was found, counted as the groups below are, and what was checked: the same for staff and learners."""
    found = [
        f"{group.size} {_TALLIES[group.severity][group.size != 1]}"
        for group in groups
        if group.severity in _TALLIES
    ]
    parts = [", ".join(found) or "No findings"]
    for checks, words in (
        (verified_checks(grade), "verified"),
        (_checks(grade, State.NOT_OBSERVABLE) + _checks(grade, State.NOT_REACHED), "not observable"),
    ):
        num_staff = sum(map(staff_only, checks))
        if checks:
            more = f" (and {num_staff} that only staff see)" if num_staff else ""
            parts.append(f"{wording.plural(len(checks) - num_staff, 'check')} {words}{more}")
    return " · ".join(parts)


def _checks(grade: Grade, state: State) -> tuple[CheckResult, ...]:
    return tuple(check for check in grade.checks if check.state is state)


def _listings(attempt: Attempt, groups: Iterable[cards.CardGroup]) -> Iterable[Listing]:
    pointing: dict[tuple[str, int], list[cards.Card]] = {}
    for group in groups:
        for card in group.cards:
            for place in dict.fromkeys((place.path, place.line) for place in card.finding.where):
                pointing.setdefault(place, []).append(card)
    submission: Submission = attempt.submission
    for file in submission.files:
        source = submission.lines(file.path)
        lines = tuple(
            (
                number,
                shown_number(submission, file.path, number),
                text,
                tuple(pointing.get((file.path, number), ())),
            )
            for number, text in enumerate(highlighted(source[:_MAX_SOURCE_LINES]), start=1)
        )
        pointed = any(path == file.path for path, _ in pointing)
        entry = file.path == attempt.task.entry_point or len(submission.files) == 1
        yield Listing(file.path, lines, max(0, len(source) - _MAX_SOURCE_LINES), pointed or entry)


def _logs(logs: tuple[tuple[str, str], ...]) -> Iterable[Log]:
    for rank, streams in enumerate(logs):
        for name, text in zip(("standard output", "standard error"), streams, strict=True):
            if text.strip():
                lines = text.rstrip("\n").split("\n")
                yield Log(rank, name, _shortened(lines), len(lines))


def _shortened(lines: list[str]) -> str:
    kept = [line if len(line) <= _LOG_WIDTH else f"{line[:_LOG_WIDTH]} … (line cut)" for line in lines]
    if len(kept) > _LOG_HEAD + _LOG_TAIL:
        gap = f"… {len(kept) - _LOG_HEAD - _LOG_TAIL:,} lines left out …"
        kept = [*kept[:_LOG_HEAD], gap, *kept[-_LOG_TAIL:]]
    return "\n".join(kept)
