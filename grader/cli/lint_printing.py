"""What linting showed, on standard output: as text, for programs, for editors, for a workflow's log."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from grader.cli.printing import emit_json, stdout_console

if TYPE_CHECKING:
    from grader.checks.lint import LintedScript
    from grader.checks.mended_script import MendedScript


def print_lint(
    linted: Sequence[LintedScript],
    *,
    form: str,
    mended: Sequence[MendedScript] = (),
    aside: bool = False,
) -> None:
    """Source findings of each script, as `text`, `json`, `sarif` or `github` annotations.

    Args:
        linted: what was found, or remains. form: one of those words.
        mended: of each script what was mended in it, where that was asked for.
        aside: text goes to standard error, as standard output holds something else.
    """
    if form == "json":
        told = [_mended_out(script) for script in mended] or [{}] * len(linted)
        files = [_linted_out(one) | more for one, more in zip(linted, told, strict=True)]
        emit_json({"schema": 1, "files": files})
        return
    if form == "sarif":
        from grader.report.exports import sarif

        sys.stdout.write(sarif.of_lint(linted))
        return
    if form == "github":
        from grader.report.annotations import to_annotations

        sys.stdout.write(to_annotations(linted))
        return
    from rich.console import Console
    from rich.text import Text

    from grader.notebooks.handed_in import is_notebook
    from grader.report.safe_text import one_line
    from grader.report.terminal.terminal_cards import print_findings

    console = Console(stderr=True, highlight=False) if aside else stdout_console()
    readable = [one for one in linted if not one.source.problem]
    for one in readable:
        if len(linted) > 1:
            console.print(Text(one_line(one.source.name), style="bold"), soft_wrap=True)
        # Where a task's items follow, they say what the text comes to: finding nothing in it is no praise.
        if one.findings or not one.steps:
            print_findings(one.findings, one.source.submission, console, weighed=bool(one.steps))
        if not mended and (num := sum(finding.fix is not None for finding in one.findings)):
            how = f"`--fix` mends {num} of these, `--diff` shows how."
            if is_notebook(one.source.name):
                how = f"`--diff` shows what mends {num} of these."
            console.print(how, style="dim", markup=False)
        if one.num_silenced:
            console.print(f"{one.num_silenced} more silenced by `# noqa`.", style="dim")
        if one.steps:
            from grader.report.findings.readiness import print_readiness

            print_readiness(one.steps, console, one.findings)
    if any(not one.steps for one in readable):
        more = "`--task TASK` says what of it counts in a task, and what that asks for besides."
        console.print(more, style="dim", markup=False)


def _mended_out(script: MendedScript) -> dict[str, Any]:
    """What was mended, with the diff that says how: also of standard input, which is written nowhere."""
    from grader.cli.lint_fixing import diff_of, mended_out

    return {"mended": mended_out(script), "diff": diff_of(script)}


def _linted_out(one: LintedScript) -> dict[str, Any]:
    from grader.report.json_report import finding_out

    out: dict[str, Any] = {"file": one.source.name, "findings": [finding_out(f) for f in one.findings]}
    if one.source.problem:
        out["error"] = one.source.problem
    if one.failures:
        out["failures"] = [failure.message for failure in one.failures]
    if one.num_silenced:
        out["silenced"] = one.num_silenced
    if one.steps:
        from grader.report.findings.readiness import steps_out

        out["steps"] = steps_out(one.steps)
    return out
