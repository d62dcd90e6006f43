"""Fixes at the command line: made in the files, or shown as a diff; what was mended is told, what remains is linted."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from grader.catalog.submissions.scripts import NamedScript
    from grader.checks.lint import LintedScript
    from grader.checks.mended_script import MendedScript

_TIMES_READ = 10


@dataclass(frozen=True, slots=True)
class Fixing:
    """What was asked for.

    Attributes:
        only_shown: as a diff; no file is touched.
        for_programs: standard output is one document, into which the rest goes as well.
    """

    only_shown: bool
    for_programs: bool


def fix_scripts(
    linted: Sequence[LintedScript], lint_again: Callable[[NamedScript], LintedScript], fixing: Fixing
) -> list[MendedScript]:
    """Make the fixes of all scripts, and write those that came from files unless they are only to be shown.

    Raises:
        UsageError: a file cannot be written; those before it are.
    """
    from grader.catalog.submissions.mended_files import write_back
    from grader.checks.limited_reading import AT_COMMAND
    from grader.checks.mended_script import MendedScript, mend
    from grader.readers import OverLimitError, read

    # It is read several times, once for each fix that is made.
    limits = replace(AT_COMMAND, cpu_s=_TIMES_READ * AT_COMMAND.cpu_s)
    done = []
    for one in linted:
        try:
            found = read(mend, one, lint_again, limits=limits)
        except OverLimitError as error:
            print(f"grader: {one.source.name}: nothing was mended, {error}", file=sys.stderr)
            found = MendedScript(one.source.submission, (), one)
        source = found.linted.source
        if found.changed and not fixing.only_shown and not source.from_stdin:
            write_back(source, found.before, found.changed)
        done.append(found)
    return done


def print_fixed(mended: Sequence[MendedScript], fixing: Fixing) -> None:
    """The diffs, or the mended standard input, on standard output; what was mended besides.

    Where standard output holds a script or a diff, nothing else is written there.
    """
    from grader.report.safe_text import one_line

    if fixing.for_programs:
        return
    passed_on = holds_result(mended, fixing)
    out = sys.stderr if passed_on else sys.stdout
    verb = "would be mended" if fixing.only_shown else "mended"
    for one in mended:
        if fixing.only_shown:
            sys.stdout.write(diff_of(one))
        elif one.linted.source.from_stdin:
            sys.stdout.write("".join(file.text for file in one.linted.source.submission.files))
        for told in mended_out(one):
            place = f"{told['file']}:{told['line']}" if told["line"] else told["file"]
            place = f"{told['file']}, {told['cell']}" if told.get("cell") else place
            print(one_line(f"{place}: {told['code']} {verb}. {told['summary']}"), file=out)


def holds_result(mended: Sequence[MendedScript], fixing: Fixing) -> bool:
    """Whether standard output is taken by a diff or a mended script, so that findings go elsewhere."""
    return fixing.only_shown or any(one.linted.source.from_stdin for one in mended)


def mended_out(one: MendedScript) -> list[dict[str, Any]]:
    """What was mended in a script, for programs; lines are those of the text that it was found in."""
    source = one.linted.source
    return [
        {
            "code": finding.code,
            "file": source.file_of(finding.location.path) if finding.location else source.name,
            "line": finding.location.line if finding.location else None,
            "summary": finding.fix.summary if finding.fix else "",
            **({"cell": finding.location.cell} if finding.location and finding.location.cell else {}),
        }
        for finding in one.mended
    ]


def diff_of(one: MendedScript) -> str:
    """All that was changed in a script, as one unified diff."""
    from grader.catalog.submissions.unified_diff import write_diff

    source = one.linted.source
    pairs = ((path, one.before.text(path) or "", source.submission.text(path) or "") for path in one.changed)
    names = {path: source.file_of(path) for path in one.changed}
    return "".join(write_diff(old, new, names[path], names[path]) for path, old, new in pairs)
