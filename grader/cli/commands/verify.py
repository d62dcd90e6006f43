"""Judge every submission of the task folders and compare verdict and codes with what they promise.

Evidence of every promise that was kept stays in the state folder: `--replay` judges it again without running anything
and says what could not be; `--cache` runs only what has no evidence that still fits, and says what has changed since.
In CI, `--shard` shares the work between machines, `--changed-since` leaves out what a change cannot touch and judges
kept evidence of the rest where the change does not reach its run, and `--no-time` keeps a busy machine's clock out of
it; `grader workflow` prints a workflow file that does all of this.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from grader.cli.exports import OF_VERIFICATION, add_export_arguments, check_exports, write_exports
from grader.cli.jobs import add_jobs_argument
from grader.cli.on_cpu import add_on_cpu_argument

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
    reuse = parser.add_mutually_exclusive_group()
    reuse.add_argument(
        "--cache",
        action="store_true",
        help="judge kept evidence again where nothing that runs has changed, and run the rest",
    )
    reuse.add_argument("--replay", action="store_true", help="judge kept evidence again and run nothing")
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
        "--cold",
        action="store_true",
        help="launch with the torchrun command, not from a warm process; promises hold however ranks start",
    )
    parser.add_argument(
        "--nproc-per-node", type=int, metavar="N", help="ranks to start; default: the profile's"
    )
    parser.add_argument("--profile", metavar="NAME", help="cpu or gpu; default: $GRADER_PROFILE or cpu")
    add_on_cpu_argument(parser)
    parser.add_argument("--dataset", metavar="NAME", help="data set; default: the task's first prepared one")
    parser.add_argument(
        "--runtime", metavar="NAME", help="where it runs; default: $GRADER_RUNTIME or process"
    )
    parser.add_argument(
        "--no-containers",
        action="store_true",
        help="do not judge each task's reference once more in docker, where an engine and the images are there",
    )
    add_export_arguments(parser, OF_VERIFICATION)
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the attempts' folders here")


def run(args: argparse.Namespace) -> int:
    """Verify and return 0 when every promise was kept."""
    from grader.catalog.submissions.submission_selection import load_selected, parse_shard
    from grader.cli.live import LiveView
    from grader.cli.verification_printing import print_verification
    from grader.errors import EXIT_ACCEPTED, EXIT_NOT_ACCEPTED, UsageError
    from grader.model.run_options import Options
    from grader.promises.container_check import check_containers, for_containers
    from grader.promises.parallel_pipelines import check_jobs
    from grader.promises.verification import Reuse, Verification, verify

    if args.repeat < 1:
        raise UsageError(f"--repeat {args.repeat}: give a number of at least 1")
    if args.repeat > 1 and (args.cache or args.replay):
        raise UsageError(
            "--repeat asks for fresh runs, --cache and --replay for evidence of earlier ones; leave one away"
        )
    jobs = check_jobs(args.jobs)
    check_exports(args)
    todo = load_selected(
        args.tasks,
        only=args.only,
        changed_since=args.changed_since,
        shard=parse_shard(args.shard) if args.shard is not None else None,
    )
    # A change of what only judges runs nothing again where evidence fits; what runs is in the evidence's key.
    reuse_fitting = args.cache or (args.changed_since is not None and args.repeat == 1)
    how = Verification(
        options=Options(
            nproc_per_node=args.nproc_per_node,
            dataset=args.dataset,
            timed=not args.no_time,
            launcher="torchrun" if args.cold else None,
            profile=args.profile,
            on_cpu=args.on_cpu,
        ),
        runtime=args.runtime,
        reuse=Reuse.ONLY if args.replay else Reuse.WHERE_KEPT if reuse_fitting else Reuse.NEVER,
        jobs=jobs,
        folder=args.keep,
    )
    # Who picks submissions out wants to see those.
    again = for_containers(todo, how) if not args.no_containers and args.only is None else ()
    with LiveView(sys.stderr, total=len(todo) * args.repeat + len(again)) as view:
        cases = verify(todo * args.repeat, how, view.progress, view.case, view.note, view.start)
        cases += check_containers(again, how, view.progress, view.case, view.start)
    print_verification(cases, as_json=args.json)
    write_exports(args, OF_VERIFICATION, cases)
    return EXIT_ACCEPTED if all(case.ok for case in cases) else EXIT_NOT_ACCEPTED
