"""Judge a stored attempt again from its files, without running anything, and say what changes.

By default the task as it is now judges. Where it scores otherwise than when the attempt was handed in, what the run
left is scored anew, if it was kept. `--version kept` judges by the version that it was handed in for.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from grader.cli.exports import OF_GRADE, add_export_arguments, check_exports, write_exports

if TYPE_CHECKING:
    from grader.model.grade import Grade
    from grader.run.workspace import Workspace

NAME = "regrade"
ORDER = 31


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `grader regrade`."""
    parser.add_argument(
        "dir", metavar="DIR", type=Path, help="an attempt's folder, as `grader grade` names it"
    )
    parser.add_argument(
        "--version",
        choices=("present", "kept"),
        default="present",
        help="judge by the task as it is now (default), or as it was handed in for",
    )
    add_export_arguments(parser, OF_GRADE)
    parser.add_argument("--staff", action="store_true", help="show findings meant for instructors, too")


def run(args: argparse.Namespace) -> int:
    """Judge again, rewrite the reports, and return 0 when accepted."""
    from grader.cli.printing import print_grade
    from grader.errors import EXIT_ACCEPTED, EXIT_NOT_ACCEPTED
    from grader.judging.attempt_folder import open_attempt
    from grader.judging.stored_attempt import judge_again, judged_version
    from grader.model.grade import Verdict
    from grader.report.audience import Audience, for_audience
    from grader.report.changes.grade_changes import grade_changes
    from grader.report.folder import write_reports
    from grader.settings import in_course

    check_exports(args)
    audience = Audience.STAFF if args.staff else Audience.LEARNER
    workspace = open_attempt(args.dir)
    before = _stored_grade(workspace)
    chosen = judged_version(workspace, as_handed_in=args.version == "kept")
    attempt = judge_again(workspace, chosen)
    with in_course(chosen.task.folder.parent):
        write_reports(attempt, workspace)
        print_grade(attempt, workspace, as_json=args.json, staff=args.staff)
        if before is not None:
            changes = grade_changes(for_audience(before, audience), for_audience(attempt.grade, audience))
            for line in changes or ("nothing changes against the grade that was stored",):
                print(f"regrade   {line}", file=sys.stderr)
        write_exports(args, OF_GRADE, attempt.grade, audience)
    return EXIT_ACCEPTED if attempt.grade.verdict is Verdict.ACCEPTED else EXIT_NOT_ACCEPTED


def _stored_grade(workspace: Workspace) -> Grade | None:
    """The grade that lies in the attempt's folder; None: none that can be read."""
    from grader.report.json_report import from_json

    try:
        return from_json(workspace.grade.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
