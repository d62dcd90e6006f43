"""A rule or a diagnosis that fails loses only itself: what stands in its place, for staff and never for a learner.

It is a finding that holds nothing, so that a grade goes on without it and says so; whoever lints is told by name, file
and line.
"""

from __future__ import annotations

from collections.abc import Iterable

from grader.checks.rule import Rule
from grader.errors import GraderError
from grader.model.finding import EvidenceKind, Finding, Severity
from grader.model.grade import CheckResult, State

_EXIT_CODE = "exit_code"


def failure_of(code: str, error: GraderError) -> Finding:
    """What is told of what failed; `code`: a rule's, or a diagnosis's id; `error` says with which file and line."""
    return Finding(
        code=code,
        severity=Severity.REVIEW,
        evidence=EvidenceKind.SOURCE,
        message=f"{error}. Everything else was judged without it.",
        details={"holds": False, _EXIT_CODE: error.exit_code},
    )


def check_of(rule: Rule) -> CheckResult:
    """The check of a rule that failed, as everybody reads it."""
    reason = "The check itself failed, which is no fault of the script's; staff are told."
    return CheckResult(rule.code, State.NOT_OBSERVABLE, (), reason)


def exit_code(finding: Finding) -> int:
    """The exit code that tells whose fault a failed rule is; 0 for a finding of any other kind."""
    return int(finding.details.get(_EXIT_CODE, 0))


def parted(findings: Iterable[Finding]) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """(findings about the script, failures of rules), each in its order."""
    known = tuple(findings)
    return tuple(f for f in known if not exit_code(f)), tuple(f for f in known if exit_code(f))
