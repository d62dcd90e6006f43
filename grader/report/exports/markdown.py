"""Outcomes as a Markdown summary, as CI jobs and merge requests show it: headings, tables, what to mend.

Everything that a learner could have written is escaped, so that it is shown and never rendered.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from grader.model.finding import Finding, Severity
from grader.model.grade import Grade
from grader.report.findings.cards import effect_of
from grader.report.safe_text import one_line
from grader.report.words.wording import (
    ITEM_STATES,
    SEVERITIES,
    SYMBOLS,
    TONES,
    mend_order,
    plural,
    points_text,
    ranks_text,
    seconds_text,
)

if TYPE_CHECKING:
    from grader.model.verify_case import VerifyCase
    from grader.report.audience import Audience

HELP = "write a summary in Markdown, too, such as CI jobs show"

_SPECIAL = re.compile(r"([\\*_\[\]<>#|~!&@$])")
_BARE_BAR = re.compile(r"(?<!\\)\|")
_CODE = re.compile(r"`([^`\n]+)`")


def of_grade(grade: Grade, audience: Audience) -> str:
    """One judged attempt: verdict, points by item, findings with places and remedies."""
    from grader.model.attempt_result import AttemptResult
    from grader.report.audience import for_audience
    from grader.report.words.banner import sentence
    from grader.report.words.not_reached import not_reached_sentence

    grade = for_audience(grade, audience)
    lines = [
        f"## {SYMBOLS[TONES[grade.verdict]]} {_text(sentence(AttemptResult.of(grade)))}",
        "",
        f"{_text(grade.submission)}: {_text(grade.task)}, {plural(grade.world_size, 'rank')}, {_text(grade.dataset)}",
        "",
        _text(grade.verdict_reason),
        "",
    ]
    if missing := not_reached_sentence(grade):
        lines += [_text(missing), ""]
    if grade.diagnosis is not None:
        # Two sentences and a remedy; the learner's own words are in the log of the job.
        parts = (grade.diagnosis.explanation, grade.diagnosis.hint)
        lines += [f"**{_text(grade.diagnosis.title)}.** {' '.join(_text(part) for part in parts)}", ""]
    if grade.rubric:
        rows = [
            (
                _text(item.title) + (" (must)" if item.must else ""),
                ITEM_STATES[item.state][0],
                f"{points_text(item.earned)} / {points_text(item.points)}" if item.points else "–",
            )
            for item in grade.rubric
        ]
        lines += [*_table(("item", "seen", "points"), rows), ""]
    lines += _findings(grade)
    lines += [f"Held because: {_text(reason)}\n" for reason in grade.review]
    lines += [f"*{_text(note)}*\n" for note in grade.notes]
    return "\n".join(lines).rstrip("\n") + "\n"


def of_verification(cases: Sequence[VerifyCase]) -> str:
    """What `grader verify` found: broken promises first and in full, then every case."""
    broken, skipped = [case for case in cases if not case.ok], [case for case in cases if case.skipped]
    num_run, num_cached = len(cases) - len(skipped), sum(case.cached for case in cases)
    symbol = SYMBOLS["bad" if broken else "good"]
    lines = [f"## {symbol} Tasks: {num_run - len(broken)} of {plural(num_run, 'promise')} kept", ""]
    if not cases:
        lines += ["There was nothing to verify.", ""]
    if num_cached:
        lines += [f"{num_cached} of them were kept in an earlier run and not run again.", ""]
    for reason in dict.fromkeys(case.skipped for case in skipped):
        lines += [f"{sum(case.skipped == reason for case in skipped)} more skipped. {_text(reason)}", ""]
    for case in broken:
        lines += [f"- **{_text(case.task)}/{_text(case.place)}**: {_text(case.message)}"]
    lines += [""] if broken else []
    rows = [
        (
            SYMBOLS["quiet" if case.skipped else "good" if case.ok else "bad"],
            f"{_text(case.task)}/{_text(case.place)}",
            _text(case.expected_verdict),
            _text(case.verdict) or "skipped",
            _text(" ".join(case.codes)) or "–",
            "cached" if case.cached else seconds_text(case.seconds),
        )
        for case in sorted(cases, key=lambda case: (case.ok, case.task, case.submission))
    ]
    if rows:
        lines += _table(("", "submission", "promised", "verdict", "codes", "time"), rows)
    return "\n".join(lines).rstrip("\n") + "\n"


def _findings(grade: Grade) -> Iterable[str]:
    ordered = sorted(grade.findings, key=mend_order)
    for severity in Severity:
        members = [finding for finding in ordered if effect_of(finding, grade) is severity]
        if members:
            yield f"### {SEVERITIES[severity][0]}\n"
        for finding in members:
            yield _finding(finding) + "\n"


def _finding(finding: Finding) -> str:
    place = finding.location
    where = f" `{_code(str(place))}`" if place is not None else ""
    ranks = f", {ranks_text(finding.ranks)}" if finding.ranks else ""
    text = f"- **{_text(finding.code)}**{where}{ranks}: {_text(finding.message)}"
    return text + (f" {_text(finding.hint)}" if finding.hint else "")


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    head = "| " + " | ".join(headings) + " |"
    return [head, "|" + " --- |" * len(headings), *(f"| {' | '.join(map(_cell, row))} |" for row in rows)]


def _cell(text: str) -> str:
    # A bar ends a cell even inside code.
    return _BARE_BAR.sub(r"\\|", text)


def _text(text: str) -> str:
    """A sentence on one line: code between backquotes stays code, everything else shows as it is."""
    parts = _CODE.split(one_line(text))
    return "".join(
        f"`{_code(part)}`" if number % 2 else _SPECIAL.sub(r"\\\1", part).replace("`", r"\`")
        for number, part in enumerate(parts)
    )


def _code(text: str) -> str:
    return one_line(text).replace("`", "'")
