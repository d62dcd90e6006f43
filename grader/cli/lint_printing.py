"""What linting showed, on standard output: as text, for programs, for editors, for a workflow's log."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from grader.cli.printing import emit_json, stdout_console

if TYPE_CHECKING:
    from grader.checks.lint import LintedScript


def print_lint(linted: Sequence[LintedScript], *, form: str) -> None:
    """Source findings of each script, as `text`, `json`, `sarif` or `github` annotations."""
    if form == "json":
        emit_json({"schema": 1, "files": [_linted_out(one) for one in linted]})
        return
    if form == "sarif":
        from grader.report.exports import sarif

        sys.stdout.write(sarif.of_lint(linted))
        return
    if form == "github":
        from grader.report.annotations import to_annotations

        sys.stdout.write(to_annotations(linted))
        return
    from rich.text import Text

    from grader.report.readiness import print_readiness
    from grader.report.safe_text import one_line
    from grader.report.terminal import print_findings

    console = stdout_console()
    readable = [one for one in linted if not one.source.problem]
    for one in readable:
        if len(linted) > 1:
            console.print(Text(one_line(one.source.name), style="bold"), soft_wrap=True)
        print_findings(one.findings, one.source.submission, console)
        if one.num_silenced:
            console.print(f"{one.num_silenced} more silenced by `# noqa`.", style="dim")
        if one.steps:
            print_readiness(one.steps, console, one.findings)
        elif not one.findings:
            console.print(
                "`--task TASK` says what a task asks for that is not in it.", style="dim", markup=False
            )


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
        from grader.report.readiness import steps_out

        out["steps"] = steps_out(one.steps)
    return out
