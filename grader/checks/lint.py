"""The source halves alone: what can be said about a script without running it.

Severities are the rules' defaults: no run has confirmed or refuted anything. It imports neither torch nor numpy, so
that an editor may call it on every save.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from grader.catalog.submissions.scripts import NamedScript
from grader.checks.choice import Choice
from grader.checks.rubric_step import RubricStep
from grader.checks.rule import Hit, Rule, load_rules
from grader.checks.rule_failures import failure_of, parted
from grader.checks.source.script import SYNTAX, Script, parse
from grader.checks.source.syntax.noqa import Silenced
from grader.checks.syntax_page import PAGE
from grader.errors import GraderError
from grader.model.finding import EvidenceKind, Finding, Severity
from grader.model.notebook_lines import by_cell
from grader.model.submission import Submission
from grader.plugins.garbage import without_collections


@dataclass(frozen=True, slots=True)
class LintedScript:
    """One script as the command line named it, and what its text gives away.

    Attributes:
        source: the script; findings: those that were asked for, gravest first.
        failures: rules that failed on it, see `rule_failures`.
        num_silenced: findings that `# noqa` comments of the script keep back.
        steps: the items of the task that it was held against, if any was named.
    """

    source: NamedScript
    findings: tuple[Finding, ...] = ()
    num_silenced: int = 0
    steps: tuple[RubricStep, ...] = ()
    failures: tuple[Finding, ...] = ()


def lint_script_as_asked(
    source: NamedScript, choice: Choice, findings: Sequence[Finding] | None = None
) -> LintedScript:
    """Lint one script as its author wants it: chosen rules only, without what `# noqa` comments silence.

    Args:
        source: the script.
        choice: rules asked for.
        findings: of its text, where they are known already.
    """
    if source.problem:
        return LintedScript(source)
    if findings is None:
        with without_collections():
            # Without a task nobody has said that a launcher will start it.
            findings = lint_script(parse(source.submission, launched=None))
    wanted, failures = parted(finding for finding in findings if choice.wants(finding.code))
    silenced = Silenced(source.submission)
    kept = tuple(finding for finding in wanted if not silenced.covers(finding))
    return LintedScript(source, kept, len(wanted) - len(kept), failures=failures)


def lint(submission: Submission, *, launched: bool = True) -> tuple[Finding, ...]:
    """Findings of all source halves, gravest first, then by code and place; always the same for the same files.

    `launched`: see `Script`. A rule that fails says nothing here; `lint_script` tells of it.
    """
    with without_collections():
        return parted(lint_script(parse(submission, launched=launched)))[0]


def lint_script(script: Script) -> tuple[Finding, ...]:
    """The same for a script that is parsed already, with what stands in place of rules that failed."""
    if script.syntax_errors:
        return by_cell(tuple(p.finding() for p in script.syntax_errors), script.submission)
    found = []
    for rule in load_rules():
        if rule.severity is Severity.REVIEW:
            continue
        try:
            found += [_finding(rule, hit) for hit in rule.source_hits(script)]
        except GraderError as error:
            found.append(failure_of(rule.code, error))
    return by_cell(tuple(sorted(found, key=_order)), script.submission)


def load_page(code: str) -> str | None:
    """A rule's documentation page (Markdown) by its code, in upper or lower case; None for an unknown code."""
    if code.upper() == SYNTAX:
        return PAGE
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
        fix=hit.fix,
    )


def _order(finding: Finding) -> tuple[int, str, str, int, int]:
    where = finding.location
    place = (where.path, where.line, where.column) if where else ("", 0, 0)
    return (finding.severity.rank, finding.code, *place)
