"""Judge a stored attempt again from its files, without running anything."""

from __future__ import annotations

import argparse
from pathlib import Path

from grader.cli.exports import add_export_arguments, check_exports, grade_exports, write_exports

NAME = "regrade"
ORDER = 31


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `grader regrade`."""
    parser.add_argument(
        "dir", metavar="DIR", type=Path, help="an attempt's folder, as `grader grade` names it"
    )
    add_export_arguments(parser, "gradescope", "junit", "markdown")
    parser.add_argument("--staff", action="store_true", help="show findings meant for instructors, too")


def run(args: argparse.Namespace) -> int:
    """Judge again, rewrite the reports, and return 0 when accepted."""
    from grader.attempts import open_attempt
    from grader.cli.printing import print_grade
    from grader.errors import EXIT_ACCEPTED, EXIT_NOT_ACCEPTED
    from grader.judgement import regrade
    from grader.model.grade import Verdict
    from grader.report.folder import write_reports

    check_exports(args)
    workspace = open_attempt(args.dir)
    attempt = regrade(workspace)
    write_reports(attempt, workspace)
    print_grade(attempt, workspace, as_json=args.json, staff=args.staff)
    write_exports(args, grade_exports(attempt.grade, staff=args.staff))
    return EXIT_ACCEPTED if attempt.grade.verdict is Verdict.ACCEPTED else EXIT_NOT_ACCEPTED
