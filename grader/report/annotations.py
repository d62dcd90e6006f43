"""Lint findings as GitHub Actions reads them in a job's log: a workflow command each, shown beside the line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from grader.checks.lint import LintedScript
from grader.model.finding import Finding, Severity
from grader.report.safe_text import visible

_COMMANDS = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.HINT: "notice",
    Severity.REVIEW: "notice",
}


def to_annotations(scripts: Sequence[LintedScript]) -> str:
    """One line per finding, and one per script that could not be read; "" where there are none."""
    return "".join(f"{line}\n" for script in scripts for line in _lines(script))


def _lines(script: LintedScript) -> Iterable[str]:
    if script.source.problem:
        yield f"::error file={_property(script.source.name)},title=unreadable::{_data(script.source.problem)}"
    for finding in script.findings:
        yield _line(script, finding)


def _line(script: LintedScript, finding: Finding) -> str:
    place = finding.location
    facts = [("file", script.source.file_of(place.path) if place else script.source.name)]
    # The lines of a notebook's file are none of its author's.
    if place is not None and not place.cell:
        facts += [("line", str(place.line)), ("endLine", str(place.end_line))]
        if place.column and place.line == place.end_line:
            facts.append(("col", str(place.column)))
    facts.append(("title", finding.code))
    cell = f"{place}: " if place is not None and place.cell else ""
    text = cell + finding.message + (f"\n\nInstead: {finding.hint}" if finding.hint else "")
    properties = ",".join(f"{name}={_property(value)}" for name, value in facts)
    return f"::{_COMMANDS[finding.severity]} {properties}::{_data(text)}"


def _data(text: str) -> str:
    # As GitHub's own toolkit escapes them: a line break would end the command.
    return visible(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
