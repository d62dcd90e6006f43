"""Prove a course: every task keeps its promises, all points can be had, no skeleton passes unchanged.

Reads the course file (default: `course.toml` in the folder of tasks), judges every submission and every skeleton of its
tasks, and says what is wrong. Tasks that span several machines are run in containers. Ends with 0 when all is proved,
1 when something is wrong, 3 when a file has mistakes, 4 when this machine could not run a part of it.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from grader.cli.jobs import add_jobs_argument
from grader.cli.on_cpu import add_on_cpu_argument

if TYPE_CHECKING:
    from grader.model.verify_case import VerifyCase
    from grader.promises.course_proof import Proof

NAME = "check"
ORDER = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `grader course check`."""
    parser.add_argument(
        "file", metavar="FILE", nargs="?", type=Path, help="course file; default: course.toml of the tasks"
    )
    parser.add_argument(
        "--runtime",
        metavar="NAME",
        action="append",
        help="where to run, may be repeated; default: $GRADER_RUNTIME or process",
    )
    parser.add_argument("--dataset", metavar="NAME", help="data set; default: each task's first prepared one")
    parser.add_argument(
        "--no-time",
        action="store_true",
        help="leave time targets and their points out; nothing is calibrated",
    )
    parser.add_argument(
        "--cache",
        action="store_true",
        help="judge kept evidence again where nothing that runs has changed, instead of running it",
    )
    parser.add_argument(
        "--no-containers",
        action="store_true",
        help="do not judge each task's reference once more in docker, where an engine and the images are there",
    )
    add_on_cpu_argument(parser)
    add_jobs_argument(parser)
    parser.add_argument(
        "--keep",
        type=Path,
        metavar="DIR",
        help="keep the submissions' attempts here, with index.html over their reports",
    )
    parser.add_argument(
        "--read-only", action="store_true", help="read the course and its tasks; run nothing, prove nothing"
    )


def run(args: argparse.Namespace) -> int:
    """Prove, print, and return 0 when nothing is wrong."""
    from grader.catalog.courses.course_file import load_course
    from grader.catalog.courses.course_notes import course_notes
    from grader.catalog.tasks.task_folders import load_task
    from grader.checks.diagnosis import load_explanations
    from grader.checks.rule import load_rules
    from grader.cli.course_printing import print_course, print_proof
    from grader.cli.live import LiveView
    from grader.errors import EXIT_ACCEPTED, EXIT_INFRA_ERROR, EXIT_NOT_ACCEPTED
    from grader.model.run_options import Options
    from grader.promises.course_proof import num_runs, prove
    from grader.promises.parallel_pipelines import check_jobs
    from grader.promises.verification import Reuse, Verification
    from grader.settings import settings

    jobs = check_jobs(args.jobs)
    # What judges is a part of the course: a rule that does not fit is told before anything runs.
    load_rules()
    load_explanations()
    course = load_course(args.file)
    runtimes = tuple(args.runtime or (settings().runtime,))
    how = Verification(
        options=Options(dataset=args.dataset, timed=not args.no_time, on_cpu=args.on_cpu),
        reuse=Reuse.WHERE_KEPT if args.cache else Reuse.NEVER,
        jobs=jobs,
        folder=args.keep,
    )
    containers = not args.no_containers and not args.read_only
    total = num_runs(course, runtimes, how, containers=containers)
    if args.read_only:
        notes = course_notes(course, (load_task(item.task) for item in course.items))
        print_course(course, notes, as_json=args.json)
        return EXIT_ACCEPTED
    with LiveView(sys.stderr, total=total) as view:
        proof = prove(
            course,
            runtimes,
            how,
            view,
            containers=containers,
        )
    print_proof(proof, as_json=args.json)
    if args.keep is not None:
        _write_page(proof, args.keep)
    if not proof.ok:
        return EXIT_NOT_ACCEPTED
    return EXIT_INFRA_ERROR if proof.unproved else EXIT_ACCEPTED


def _write_page(proof: Proof, folder: Path) -> None:
    """A page over the reports that verifying left in folders of its own."""
    from grader.files import write_whole
    from grader.report.html.course_page import PageRow, course_page

    def report(runtime: str, case: VerifyCase) -> str:
        name = str(Path(case.submission).with_suffix("")).replace("/", "-")
        # What was judged once more in containers lies in a folder of its own, beside what was judged before.
        place = f"*-*/{case.runtime}" if case.runtime else f"{runtime}-*"
        found = folder.glob(f"{place}/*-{case.task}-{name}/report.html")
        return next((path.relative_to(folder).as_posix() for path in found), "")

    rows = [PageRow(case.runtime or runtime, case, report(runtime, case)) for runtime, case in proof.cases]
    page = course_page(proof.course, rows, (*proof.problems, *proof.unproved))
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / "index.html", page)
