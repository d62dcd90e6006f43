"""Judge every submission of the task folders and compare verdict and codes with what they promise."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

NAME = "verify"
ORDER = 30


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `grader verify`."""
    parser.add_argument("tasks", metavar="TASK", nargs="*", help="tasks to verify; default: all")
    parser.add_argument("--only", metavar="TEXT", help="only submissions whose path contains TEXT")
    parser.add_argument(
        "--repeat", type=int, default=1, metavar="N", help="judge each N times; every time must agree"
    )
    parser.add_argument(
        "--nproc-per-node", type=int, metavar="N", help="ranks to start; default: the profile's"
    )
    parser.add_argument("--dataset", metavar="NAME", help="data set; default: the task's first prepared one")
    parser.add_argument(
        "--runtime", metavar="NAME", help="where it runs; default: $GRADER_RUNTIME or process"
    )
    parser.add_argument("--junit", type=Path, metavar="FILE", help="write the outcome as JUnit XML, too")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the attempts' folders here")


def run(args: argparse.Namespace) -> int:
    """Verify and return 0 when every promise was kept."""
    from grader.cli.live import LiveView
    from grader.cli.printing import print_verification
    from grader.errors import EXIT_ACCEPTED, EXIT_NOT_ACCEPTED, UsageError
    from grader.pipeline import Options
    from grader.report.junit import to_junit
    from grader.verify import verify

    if args.repeat < 1:
        raise UsageError(f"--repeat {args.repeat}: give a number of at least 1")
    options = Options(nproc_per_node=args.nproc_per_node, dataset=args.dataset, runtime=args.runtime)
    with LiveView(sys.stderr) as view:
        cases = verify(
            tuple(args.tasks),
            options,
            view.progress,
            view.case,
            only=args.only,
            repeat=args.repeat,
            keep=args.keep,
        )
    if args.junit is not None:
        args.junit.parent.mkdir(parents=True, exist_ok=True)
        args.junit.write_text(to_junit(cases), encoding="utf-8")
    print_verification(cases, as_json=args.json)
    return EXIT_ACCEPTED if all(case.ok for case in cases) else EXIT_NOT_ACCEPTED
