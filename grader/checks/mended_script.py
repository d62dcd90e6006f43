"""Fixes made in a script, as many as can be: those that don't overlap, then what is left, until nothing more applies.

The text is only ever exchanged for one that is valid Python and has fewer findings with a fix; nothing here writes a
file.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from grader.catalog.submissions.scripts import NamedScript
from grader.checks.lint import LintedScript
from grader.checks.source.script import syntax_problem
from grader.model.finding import Finding
from grader.model.fix import Fix, mended
from grader.model.submission import Submission

_MOST_ROUNDS = 50
"""Two fixes that need the same import take one round each; no script has ever taken ten."""


@dataclass(frozen=True, slots=True)
class MendedScript:
    """A script and what became of it.

    Attributes:
        before: its files as they were.
        mended: findings whose fixes were made, in the order in which they were.
        linted: the script as it is now, and what remains to be found in it.
    """

    before: Submission
    mended: tuple[Finding, ...]
    linted: LintedScript

    @property
    def changed(self) -> tuple[str, ...]:
        """Paths of the files that are different now."""
        after = self.linted.source.submission
        return tuple(file.path for file in self.before.files if after.text(file.path) != file.text)


def mend(linted: LintedScript, lint_again: Callable[[NamedScript], LintedScript]) -> MendedScript:
    """Make all fixes of a script's findings.

    Args:
        linted: the script and its findings.
        lint_again: asks the same of a later text of it.
    """
    before, done = linted.source.submission, list[Finding]()
    for _ in range(_MOST_ROUNDS):
        chosen, text = _together(linted.source.submission, linted.findings)
        if not chosen:
            break
        after = lint_again(replace(linted.source, submission=text))
        codes = {finding.code for finding in chosen}
        if _num_fixable(after.findings, codes) >= _num_fixable(linted.findings, codes):
            break
        done += chosen
        linted = after
    return MendedScript(before, tuple(done), linted)


def _together(submission: Submission, findings: Sequence[Finding]) -> tuple[list[Finding], Submission]:
    """The first fixes that can be made at once, and the text that they make."""
    chosen: list[Finding] = []
    fixes: list[Fix] = []
    text = submission
    for finding in findings:
        fix = finding.fix
        if fix is None or any(fix.overlaps(other) for other in fixes):
            continue
        try:
            attempt = mended(submission, (*fixes, fix))
        except ValueError:
            continue
        if syntax_problem(attempt) is None:
            chosen.append(finding)
            fixes.append(fix)
            text = attempt
    return chosen, text


def _num_fixable(findings: Sequence[Finding], codes: Collection[str]) -> int:
    return sum(finding.fix is not None and finding.code in codes for finding in findings)
