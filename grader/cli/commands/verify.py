"""Judge every submission of the task folders and compare verdict and codes with what they promise.

In CI, `--shard` shares the work between machines, `--changed-since` leaves out what a change cannot touch, `--cache`
takes outcomes that are known already, and `--no-time` keeps a busy machine's clock out of it; `grader workflow` prints
a workflow file that does all of this.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from grader.cli.exports import add_export_arguments, check_exports, write_exports
from grader.cli.jobs import add_jobs_argument

NAME = "verify"
ORDER = 30


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `grader verify`."""
    parser.add_argument("tasks", metavar="TASK", nargs="*", help="tasks to verify; default: all")
    parser.add_argument("--only", metavar="TEXT", help="only submissions whose path contains TEXT")
    parser.add_argument(
        "--changed-since",
        metavar="REV",
        help="only submissions whose outcome a change since this git revision may touch",
    )
    parser.add_argument(
        "--shard", metavar="I/N", help="only the I-th of N shares, for N machines side by side"
    )
    parser.add_argument(
        "--cache",
        action="store_true",
        help="take promises kept in earlier runs where nothing that decides them has changed, and keep those of now",
    )
    parser.add_argument(
        "--no-time",
        action="store_true",
        help="leave time targets and their points out; nothing is calibrated",
    )
    parser.add_argument(
        "--repeat", type=int, default=1, metavar="N", help="judge each N times; every time must agree"
    )
    add_jobs_argument(parser)
    parser.add_argument(
        "--nproc-per-node", type=int, metavar="N", help="ranks to start; default: the profile's"
    )
    parser.add_argument("--dataset", metavar="NAME", help="data set; default: the task's first prepared one")
    parser.add_argument(
        "--runtime", metavar="NAME", help="where it runs; default: $GRADER_RUNTIME or process"
    )
    add_export_arguments(parser, "junit", "markdown")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the attempts' folders here")


def run(args: argparse.Namespace) -> int:
    """Verify and return 0 when every promise was kept."""
    from grader.catalog.selection import parse_shard
    from grader.cli.live import LiveView
    from grader.cli.printing import print_verification
    from grader.errors import EXIT_ACCEPTED, EXIT_NOT_ACCEPTED, UsageError
    from grader.lanes import check_jobs
    from grader.pipeline import Options
    from grader.report.junit import to_junit
    from grader.report.markdown import cases_to_markdown
    from grader.verify import verify

    if args.repeat < 1:
        raise UsageError(f"--repeat {args.repeat}: give a number of at least 1")
    if args.repeat > 1 and args.cache:
        raise UsageError("--repeat asks for fresh runs and --cache for known outcomes; leave one away")
    jobs = check_jobs(args.jobs)
    check_exports(args)
    options = Options(
        nproc_per_node=args.nproc_per_node,
        dataset=args.dataset,
        runtime=args.runtime,
        timed=not args.no_time,
    )
    with LiveView(sys.stderr) as view:
        cases = verify(
            tuple(args.tasks),
            options,
            view.progress,
            view.case,
            only=args.only,
            changed_since=args.changed_since,
            shard=parse_shard(args.shard) if args.shard is not None else None,
            repeat=args.repeat,
            cached=args.cache,
            keep=args.keep,
            jobs=jobs,
        )
    print_verification(cases, as_json=args.json)
    write_exports(args, {"junit": lambda: to_junit(cases), "markdown": lambda: cases_to_markdown(cases)})
    return EXIT_ACCEPTED if all(case.ok for case in cases) else EXIT_NOT_ACCEPTED
