"""Judge the accepted reference and two flawed submissions of ddp-fashion, and show what the reports say."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

NAME = "demo"
ORDER = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `grader demo`."""
    parser.add_argument(
        "--out", type=Path, default=Path("build/demo"), metavar="DIR", help="where the reports go"
    )


def run(args: argparse.Namespace) -> int:
    """Judge three submissions; 0 when each got the verdict that its folder promises."""
    from grader.cli.live import LiveView
    from grader.cli.printing import emit_json, print_demo, print_reports
    from grader.errors import EXIT_ACCEPTED, EXIT_NOT_ACCEPTED
    from grader.promises.demo import demonstrate

    steps = []
    with LiveView(sys.stderr) as view:
        for step in demonstrate(args.out, view.progress):
            steps.append(step)
            if not args.json:
                with view.paused():
                    print_demo(step)
    if args.json:
        emit_json(
            [
                {
                    "submission": step.promised.name,
                    "verdict": step.attempt.grade.verdict.value,
                    "kept": step.kept,
                    "report": str(step.workspace.report),
                }
                for step in steps
            ]
        )
    else:
        print_reports(steps)
    return EXIT_ACCEPTED if all(step.kept for step in steps) else EXIT_NOT_ACCEPTED
