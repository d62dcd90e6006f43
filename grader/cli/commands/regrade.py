"""Judge a stored attempt again from its files, without running anything."""

from __future__ import annotations

import argparse
from pathlib import Path

from grader.cli.exports import OF_GRADE, add_export_arguments, check_exports, write_exports

NAME = "regrade"
ORDER = 31


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `grader regrade`."""
    parser.add_argument(
        "dir", metavar="DIR", type=Path, help="an attempt's folder, as `grader grade` names it"
    )
    add_export_arguments(parser, OF_GRADE)
    parser.add_argument("--staff", action="store_true", help="show findings meant for instructors, too")


def run(args: argparse.Namespace) -> int:
    """Judge again, rewrite the reports, and return 0 when accepted."""
    from grader.cli.printing import print_grade
    from grader.errors import EXIT_ACCEPTED, EXIT_NOT_ACCEPTED
    from grader.judging.attempt_folder import open_attempt
    from grader.judging.judge import regrade
    from grader.model.grade import Verdict
    from grader.report.audience import Audience
    from grader.report.folder import write_reports

    check_exports(args)
    workspace = open_attempt(args.dir)
    attempt = regrade(workspace)
    write_reports(attempt, workspace)
    print_grade(attempt, workspace, as_json=args.json, staff=args.staff)
    write_exports(args, OF_GRADE, attempt.grade, Audience.STAFF if args.staff else Audience.LEARNER)
    return EXIT_ACCEPTED if attempt.grade.verdict is Verdict.ACCEPTED else EXIT_NOT_ACCEPTED
