"""Lint findings as SARIF 2.1.0, the format of code-scanning viewers (OASIS standard, JSON).

Every rule comes with its page as help, every finding with a region and a fingerprint that survives lines being added
above it. Paths are relative to the folder that the command ran in, which is taken for the repository's root.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from grader import __version__
from grader.model.finding import Finding, Location, Severity
from grader.model.fix import Fix, line_end
from grader.model.submission import Submission
from grader.report.safe_text import visible

if TYPE_CHECKING:
    from grader.checks.lint import LintedScript
    from grader.checks.rule import Rule

HELP = "write the findings as SARIF 2.1.0, too, for code-scanning viewers"

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.HINT: "note",
    Severity.REVIEW: "note",
}
_ROOT = "%SRCROOT%"


def of_lint(scripts: Sequence[LintedScript]) -> str:
    """The findings of all scripts as one run, with a newline at its end; what could not be read is a notification."""
    from grader.checks.rule import load_rules

    # Rules for staff have no findings in lint, and their pages would tell learners what is watched.
    described = [
        _syntax_rule(),
        *(_rule(rule) for rule in load_rules() if rule.severity is not Severity.REVIEW),
    ]
    index = {rule["id"]: number for number, rule in enumerate(described)}
    unread = [script for script in scripts if script.source.problem]
    invocation: dict[str, Any] = {"executionSuccessful": not unread}
    if unread:
        invocation["toolExecutionNotifications"] = [_notification(script) for script in unread]
    document = {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "grader", "semanticVersion": __version__, "rules": described}},
                "columnKind": "utf16CodeUnits",
                "originalUriBaseIds": {_ROOT: {"description": {"text": "The root of the repository."}}},
                "invocations": [invocation],
                "results": [result for script in scripts for result in _results(script, index)],
            }
        ],
    }
    return json.dumps(document, indent=2) + "\n"


def _rule(rule: Rule) -> dict[str, Any]:
    title = visible(rule.title)
    return {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": title},
        "fullDescription": {"text": _first_section(rule.page) or title},
        "help": {"text": rule.page, "markdown": rule.page},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        "properties": {"tags": [rule.code.rstrip("0123456789")]},
    }


def _syntax_rule() -> dict[str, Any]:
    from grader.checks.source.script import SYNTAX

    text = "The file is not valid Python, so that nothing in it can run and nothing else was looked at."
    return {
        "id": SYNTAX,
        "name": "syntax_error",
        "shortDescription": {"text": "The file is not valid Python."},
        "fullDescription": {"text": text},
        "help": {"text": f"{text} `python -m py_compile FILE` names the line."},
        "defaultConfiguration": {"level": "error"},
        "properties": {"tags": [SYNTAX]},
    }


def _first_section(page: str) -> str:
    _, _, rest = page.partition("\n## ")
    return " ".join(rest.partition("\n")[2].partition("\n## ")[0].split())


def _results(script: LintedScript, index: dict[str, int]) -> list[dict[str, Any]]:
    import hashlib

    found, seen = [], Counter[str]()
    for finding in script.findings:
        # A finding without a line still needs a place to be shown at.
        first = finding.location or Location(script.source.submission.files[0].path, 1)
        line = script.source.submission.line(first.path, first.line)
        key = f"{finding.code} {first.path} {' '.join(line.split())}"
        short = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        seen[short] += 1
        result: dict[str, Any] = {
            "ruleId": finding.code,
            "level": _LEVELS[finding.severity],
            "message": {"text": _message(finding)},
            "locations": [{"physicalLocation": _place(script, first)}],
            "partialFingerprints": {"primaryLocationLineHash": f"{short}:{seen[short]}"},
        }
        if finding.code in index:
            result["ruleIndex"] = index[finding.code]
        if finding.where[1:]:
            result["relatedLocations"] = [
                {"id": number, "physicalLocation": _place(script, place)}
                for number, place in enumerate(finding.where[1:], start=1)
            ]
        if finding.fix is not None and not first.cell:
            result["fixes"] = [_fix(script, finding.fix)]
        found.append(result)
    return found


def _fix(script: LintedScript, fix: Fix) -> dict[str, Any]:
    """A fix with its edits by file; what it inserts ends its lines as the file does."""
    submission = script.source.submission
    changes: dict[str, list[dict[str, Any]]] = {}
    for edit in fix.edits:
        region = {
            "startLine": edit.line,
            "startColumn": _column(submission, Location(edit.path, edit.line, edit.column)),
            "endLine": edit.end_line,
            "endColumn": _column(submission, Location(edit.path, edit.end_line, edit.end_column)),
        }
        text = edit.text.replace("\n", line_end(submission.text(edit.path) or ""))
        replacement = {"deletedRegion": region, "insertedContent": {"text": text}}
        changes.setdefault(edit.path, []).append(replacement)
    return {
        "description": {"text": visible(fix.summary)},
        "artifactChanges": [
            {"artifactLocation": _artifact(script.source.file_of(path)), "replacements": replacements}
            for path, replacements in changes.items()
        ],
    }


def _message(finding: Finding) -> str:
    place = finding.location
    cell = f"{place}: " if place is not None and place.cell else ""
    return visible(cell + finding.message + (f"\n\nInstead: {finding.hint}" if finding.hint else ""))


def _place(script: LintedScript, place: Location) -> dict[str, Any]:
    first = _column(script.source.submission, place)
    last = _utf16(script.source.submission.line(place.path, place.end_line)) + 1
    artifact = _artifact(script.source.file_of(place.path))
    if place.cell:
        # The lines of a notebook's file are none of its author's: the message tells the cell.
        return {"artifactLocation": artifact}
    return {
        "artifactLocation": artifact,
        "region": {
            "startLine": place.line,
            "startColumn": first,
            "endLine": place.end_line,
            "endColumn": max(last, first + 1) if place.end_line == place.line else last,
        },
    }


def _column(submission: Submission, place: Location) -> int:
    """First column, counted in UTF-16 units from 1; findings count in bytes of UTF-8."""
    line = submission.line(place.path, place.line).encode("utf-8", "surrogatepass")
    before = line[: max(place.column - 1, 0)].decode("utf-8", "ignore")
    return _utf16(before) + 1


def _utf16(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _artifact(file: str) -> dict[str, str]:
    path = Path(file)
    here = Path.cwd().resolve()
    absolute = path if path.is_absolute() else here / path
    # Not resolved itself: a link is shown where it stands in the repository.
    whole = Path(str(absolute.parent.resolve())) / absolute.name
    if whole.is_relative_to(here):
        return {"uri": quote(whole.relative_to(here).as_posix()), "uriBaseId": _ROOT}
    return {"uri": whole.as_uri()}


def _notification(script: LintedScript) -> dict[str, Any]:
    return {
        "level": "error",
        "message": {"text": visible(script.source.problem)},
        "locations": [{"physicalLocation": {"artifactLocation": _artifact(script.source.name)}}],
    }
