"""Read scripts and name what their text gives away; nothing is executed and torch is not needed.

A FILE is a script, a folder, a pattern or `-`:

  train.py         a script of its own
  lab.ipynb        the scripts in a notebook's cells
  my_submission/   a folder with train.py is one submission, helper modules and all
  scripts/         any other folder: every .py file below is a script of its own, folders with train.py excepted
  'src/**/*.py'    a pattern in quotes; ** stands for any folders
  -                standard input, called what --stdin-filename says

A comment `# noqa: DATA002` (a code), `# noqa: DATA` (a family) or `# noqa` silences findings of its statement here;
grading reads no such comments.

With --task the findings are those that a grade of the task tells of, each as what it comes to there: it stands in the
way of acceptance, it costs so many points, or it is free advice. Every item is told, too: seen in the text, not found
there with what to write, or a matter that only a run can tell.

With --fix what can be written for certain is written into the files, and what remains is told; with --diff it is only
shown. Of standard input the mended script is printed. What takes a decision is left to you, and so is what a comment
silences. An edit that would leave a file that is no valid Python is not made.

Exit code 1 when anything of severity error was found, or something that the task demands is not in the text; 2 when a
file could not be read (the others are linted all the same) or, with --fix, not be written. With --fix and --diff it is
the findings that remain which count.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from grader.cli.exports import OF_LINT, add_export_arguments, check_exports, write_exports

if TYPE_CHECKING:
    from grader.catalog.submissions.scripts import NamedScript
    from grader.checks.choice import Choice
    from grader.checks.lint import LintedScript
    from grader.model.task import Task

NAME = "lint"
ORDER = 20
_FORMATS = ("text", "json", "sarif", "github")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `grader lint`."""
    parser.add_argument("files", metavar="FILE", nargs="+", help="scripts, folders, patterns, or -")
    parser.add_argument(
        "--task", metavar="TASK", help="hold it against this task: what counts there, and what is missing"
    )
    parser.add_argument(
        "--stdin-filename", metavar="NAME", help="what to call the script that comes from standard input"
    )
    parser.add_argument(
        "--select",
        action="append",
        default=[],
        metavar="RULES",
        help="only these codes and families, such as DATA002 or DATA,EVAL; may be repeated",
    )
    parser.add_argument(
        "--ignore",
        action="append",
        default=[],
        metavar="RULES",
        help="leave these codes and families out, selected or not; may be repeated",
    )
    parser.add_argument(
        "--format",
        choices=_FORMATS,
        help="how to print: text, json (as --json), sarif, or github (annotations in a workflow's log)",
    )
    parser.add_argument(
        "--fix", action="store_true", help="write what is certain into the files, and tell what remains"
    )
    parser.add_argument("--diff", action="store_true", help="show what --fix would write, and write nothing")
    add_export_arguments(parser, OF_LINT)
    parser.add_argument(
        "--exit-zero", action="store_true", help="exit with 0 even when something of severity error was found"
    )


def run(args: argparse.Namespace) -> int:
    """Lint everything that is named."""
    from grader.catalog.submissions.scripts import read_scripts
    from grader.checks.rule_failures import exit_code
    from grader.cli.lint_printing import print_lint
    from grader.errors import EXIT_ACCEPTED, EXIT_NOT_ACCEPTED, EXIT_USAGE, UsageError
    from grader.model.finding import Severity
    from grader.notebooks.handed_in import MAX_NOTEBOOK_BYTES

    if args.json and args.format not in {None, "json"}:
        raise UsageError(f"--json and --format {args.format} contradict each other; give one of them")
    lint_one = _linter(args)
    check_exports(args)
    form = "json" if args.json else args.format or "text"
    sources = read_scripts(
        args.files,
        stdin=lambda: sys.stdin.buffer.read(MAX_NOTEBOOK_BYTES + 1),
        stdin_name=args.stdin_filename,
    )
    linted = [lint_one(source) for source in sources]
    if args.fix or args.diff:
        from grader.cli.lint_fixing import Fixing, fix_scripts, holds_result, print_fixed

        fixing = Fixing(only_shown=args.diff, for_programs=form != "text")
        mended = fix_scripts(linted, lint_one, fixing)
        linted = [one.linted for one in mended]
        print_fixed(mended, fixing)
        print_lint(linted, form=form, mended=mended, aside=holds_result(mended, fixing))
    else:
        print_lint(linted, form=form)
    write_exports(args, OF_LINT, linted)
    for source in sources:
        if source.problem:
            print(f"grader: {source.problem}", file=sys.stderr)
    for one in linted:
        for failure in one.failures:
            print(f"grader: {one.source.name}: {failure.message}", file=sys.stderr)
    if any(source.problem for source in sources):
        return EXIT_USAGE
    if failed := [exit_code(failure) for one in linted for failure in one.failures]:
        return max(failed)
    bad = any(f.severity is Severity.ERROR for one in linted for f in one.findings)
    bad = bad or any(step.lacking for one in linted for step in one.steps)
    return EXIT_NOT_ACCEPTED if bad and not args.exit_zero else EXIT_ACCEPTED


def _linter(args: argparse.Namespace) -> Callable[[NamedScript], LintedScript]:
    """Asks of a script what the command line asks: the chosen rules, against a task where one is named."""
    from functools import partial

    from grader.checks.choice import parse_choice
    from grader.checks.limited_reading import AT_COMMAND, lint_script_within
    from grader.checks.lint import lint_script_as_asked

    choice = parse_choice(args.select, args.ignore)
    if args.task is None:
        return partial(lint_script_within, AT_COMMAND, partial(lint_script_as_asked, choice=choice))
    from grader.catalog.tasks.task_folders import load_task
    from grader.settings import settings

    for_task = partial(_lint_for_task, load_task(args.task), settings().profile, choice)
    return partial(lint_script_within, AT_COMMAND, for_task)


def _lint_for_task(task: Task, profile: str, choice: Choice, source: NamedScript) -> LintedScript:
    from dataclasses import replace

    from grader.checks.lint import lint_script_as_asked
    from grader.report.findings.reading import Reading, read_for

    read = Reading((), ()) if source.problem else read_for(task, source.submission, profile)
    found = (*read.findings, *read.failures)
    return replace(lint_script_as_asked(source, choice, found), steps=read.steps)
