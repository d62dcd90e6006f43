"""Judge a submission by a real run of several ranks and explain the outcome.

FILE is a train.py, a notebook whose cells hold it, or a folder with train.py and helper modules. The attempt's
folder keeps the evidence, so that `grader regrade` can judge it again without running it.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from grader.cli.exports import OF_GRADE, add_export_arguments, check_exports, write_exports
from grader.cli.on_cpu import add_on_cpu_argument

NAME = "grade"
ORDER = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `grader grade`."""
    parser.add_argument("task", metavar="TASK", help="name of a task, see `grader tasks`")
    parser.add_argument(
        "file", metavar="FILE", type=Path, help="train.py, a notebook or a folder that holds it"
    )
    parser.add_argument(
        "--nproc-per-node", type=int, metavar="N", help="ranks to start; default: the profile's"
    )
    parser.add_argument(
        "--nnodes", type=int, metavar="N", help="nodes to start ranks on; default: the profile's"
    )
    parser.add_argument("--profile", metavar="NAME", help="cpu or gpu; default: $GRADER_PROFILE or cpu")
    add_on_cpu_argument(parser)
    parser.add_argument("--dataset", metavar="NAME", help="data set; default: the task's first prepared one")
    parser.add_argument(
        "--runtime", metavar="NAME", help="where it runs; default: $GRADER_RUNTIME or process"
    )
    parser.add_argument(
        "--no-time",
        action="store_true",
        help="leave time targets and their points out; nothing is calibrated",
    )
    parser.add_argument(
        "--cold", action="store_true", help="launch with the torchrun command, not from a warm process"
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="folder for evidence and reports; new or an earlier attempt's"
    )
    add_export_arguments(parser, OF_GRADE)
    parser.add_argument("--staff", action="store_true", help="show findings meant for instructors, too")


def run(args: argparse.Namespace) -> int:
    """Judge, print, and return 0 when accepted."""
    from grader.catalog.submissions.learner_files import read_submission
    from grader.catalog.tasks.task_folders import load_task
    from grader.cli.live import LiveView
    from grader.cli.printing import print_grade
    from grader.errors import EXIT_ACCEPTED, EXIT_NOT_ACCEPTED
    from grader.model.grade import Verdict
    from grader.model.run_options import Options
    from grader.pipeline import Pipeline
    from grader.report.audience import Audience
    from grader.report.folder import write_reports

    check_exports(args)
    task = load_task(args.task)
    submission = read_submission(args.file)
    options = Options(
        profile=args.profile,
        nproc_per_node=args.nproc_per_node,
        nnodes=args.nnodes,
        dataset=args.dataset,
        timed=not args.no_time,
        launcher="torchrun" if args.cold else None,
        on_cpu=args.on_cpu,
    )
    with LiveView(sys.stderr) as view, Pipeline(args.runtime) as pipeline:
        attempt, workspace = pipeline.grade(
            task, submission, options=options, on_progress=view.progress, out=args.out
        )
        write_reports(attempt, workspace)
    print_grade(attempt, workspace, as_json=args.json, staff=args.staff)
    write_exports(args, OF_GRADE, attempt.grade, Audience.STAFF if args.staff else Audience.LEARNER)
    return EXIT_ACCEPTED if attempt.grade.verdict is Verdict.ACCEPTED else EXIT_NOT_ACCEPTED
