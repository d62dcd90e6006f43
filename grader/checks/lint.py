"""The source halves alone: what can be said about a script without running it.

Severities are the rules' defaults: no run has confirmed or refuted anything. It imports neither torch nor numpy, so
that an editor may call it on every save.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from grader.catalog.scripts import NamedScript
from grader.checks.choice import Choice
from grader.checks.rule import Hit, Rule, load_rules
from grader.checks.source.noqa import Silenced
from grader.checks.source.script import Script, parse
from grader.model.finding import EvidenceKind, Finding, Severity
from grader.model.submission import Submission


@dataclass(frozen=True, slots=True)
class LintedScript:
    """One script as the command line named it, and what its text gives away.

    Attributes:
        source: the script; findings: those that were asked for, gravest first.
        num_silenced: findings that `# noqa` comments of the script keep back.
    """

    source: NamedScript
    findings: tuple[Finding, ...] = ()
    num_silenced: int = 0


def lint_script_as_asked(source: NamedScript, choice: Choice) -> LintedScript:
    """Lint one script as its author wants it: chosen rules only, without what `# noqa` comments silence.

    Args:
        source: the script.
        choice: rules asked for.
    """
    if source.problem:
        return LintedScript(source)
    wanted = [finding for finding in lint(source.submission) if choice.wants(finding.code)]
    silenced = Silenced(source.submission)
    kept = tuple(finding for finding in wanted if not silenced.covers(finding))
    return LintedScript(source, kept, len(wanted) - len(kept))


def lint(submission: Submission) -> tuple[Finding, ...]:
    """Findings of all source halves, gravest first, then by code and place; always the same for the same files."""
    with _without_collections():
        return lint_script(parse(submission))


@contextmanager
def _without_collections() -> Iterator[None]:
    # Every node of a tree is alive while rules read it: looking for garbage among them costs a fifth of the time
    # and finds nothing.
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def lint_script(script: Script) -> tuple[Finding, ...]:
    """The same for a script that is parsed already."""
    if script.syntax_errors:
        return tuple(p.finding() for p in script.syntax_errors)
    found = [
        _finding(rule, hit)
        for rule in load_rules()
        if rule.severity is not Severity.REVIEW
        for hit in rule.source_hits(script)
    ]
    return tuple(sorted(found, key=_order))


def load_page(code: str) -> str | None:
    """A rule's documentation page (Markdown) by its code, in upper or lower case; None for an unknown code."""
    return next((rule.page for rule in load_rules() if rule.code == code.upper()), None)


def _finding(rule: Rule, hit: Hit) -> Finding:
    return Finding(
        code=rule.code,
        severity=hit.severity or rule.default_severity(None),
        evidence=EvidenceKind.SOURCE,
        message=hit.message,
        hint=hit.hint,
        where=hit.where,
        details=dict(hit.details),
    )


def _order(finding: Finding) -> tuple[int, str, str, int, int]:
    where = finding.location
    place = (where.path, where.line, where.column) if where else ("", 0, 0)
    return (finding.severity.rank, finding.code, *place)
