"""Measure a task's reference times on this machine: five runs of every accepted style, and the skeleton on one rank."""

from __future__ import annotations

import argparse
import sys

NAME = "calibrate"
ORDER = 60


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `grader calibrate`."""
    parser.add_argument("task", metavar="TASK", help="name of a task, see `grader tasks`")
    parser.add_argument(
        "--runs", type=int, default=5, metavar="N", help="runs of each accepted style (default 5)"
    )
    parser.add_argument(
        "--nproc-per-node", type=int, metavar="N", help="ranks to start; default: the profile's"
    )
    parser.add_argument("--profile", metavar="NAME", help="cpu or gpu; default: $GRADER_PROFILE or cpu")
    parser.add_argument("--dataset", metavar="NAME", help="data set; default: the task's first prepared one")
    parser.add_argument(
        "--cold",
        action="store_true",
        help="measure what `grader grade --cold` is held against: launched with the torchrun command",
    )
    parser.add_argument(
        "--runtime", metavar="NAME", help="where it runs; default: $GRADER_RUNTIME or process"
    )


def run(args: argparse.Namespace) -> int:
    """Calibrate, store and show the result."""
    from grader.catalog.tasks.task_folders import load_task
    from grader.cli.live import LiveView
    from grader.cli.printing import print_calibration
    from grader.errors import EXIT_ACCEPTED, UsageError
    from grader.model.run_options import Options
    from grader.pipeline import Pipeline

    if args.runs < 1:
        raise UsageError(f"--runs {args.runs}: give a number of at least 1")
    options = Options(
        profile=args.profile,
        nproc_per_node=args.nproc_per_node,
        dataset=args.dataset,
        launcher="torchrun" if args.cold else None,
    )
    task = load_task(args.task)
    with LiveView(sys.stderr) as view, Pipeline(args.runtime) as pipeline:
        calibration, path = pipeline.calibrate(task, args.runs, options=options, on_progress=view.progress)
    print_calibration(calibration, task, path, as_json=args.json)
    return EXIT_ACCEPTED
