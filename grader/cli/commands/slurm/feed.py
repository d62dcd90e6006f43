"""Keep as many workers pending on the cluster as the queue needs, until told to end.

Runs on a host that submits jobs, and reaches the service's database or, with --server, the service. Each look compares
what waits in the queue with this account's jobs of the same --prefix, submits what is missing and cancels pending jobs
that nothing needs any more. Running jobs are left alone: a worker ends by itself when there is nothing to judge. A
second feed for the same service is not needed, and does no harm.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from grader.cluster.feed import FeedReport, WorkerFeed
    from grader.store.queue.worker_demand import WorkerDemand

NAME = "feed"
ORDER = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `grader slurm feed`."""
    parser.add_argument(
        "--most",
        type=int,
        default=4,
        metavar="M",
        help="jobs that wait and run at a time (default %(default)s)",
    )
    parser.add_argument(
        "--every",
        type=float,
        default=15.0,
        metavar="S",
        help="seconds between two looks (default %(default)g)",
    )
    parser.add_argument("--once", action="store_true", help="look once, then end")
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="look once, and only print what would be done and the batch scripts",
    )
    parser.add_argument(
        "--time", type=int, default=60, metavar="MINUTES", help="time limit of a job (default %(default)s)"
    )
    parser.add_argument(
        "--cpus",
        type=int,
        default=8,
        metavar="N",
        help="cores of a job, per GPU where it has some (default %(default)s)",
    )
    parser.add_argument(
        "--idle",
        type=int,
        default=120,
        metavar="S",
        help="seconds without anything to judge after which a worker ends (default %(default)s)",
    )
    parser.add_argument(
        "--runtime", default="apptainer", help="what submissions are run by there (default %(default)s)"
    )
    parser.add_argument(
        "--sbatch",
        action="append",
        default=[],
        metavar="OPTION",
        help="an option for sbatch, such as --sbatch=--partition=gpu; again for each",
    )
    parser.add_argument(
        "--server",
        metavar="URL",
        default="",
        help="ask this service instead of a database, as do the workers",
    )
    parser.add_argument(
        "--template", type=Path, metavar="FILE", help="a batch script of your own, as a template"
    )
    parser.add_argument(
        "--command", help="how compute nodes call the grader; default: this very one, on a shared file system"
    )
    parser.add_argument(
        "--prefix",
        default="grader",
        help="what the jobs' names begin with, one for each service (default %(default)s)",
    )
    parser.add_argument(
        "--logs", type=Path, metavar="FOLDER", help="where jobs log; default: slurm in the state folder"
    )


def run(args: argparse.Namespace) -> int:
    """Feed until told to end, or once; 0, or 4 where a single look could not do all that it was to do."""
    import signal
    import threading

    from grader.errors import EXIT_ACCEPTED, EXIT_INFRA_ERROR

    demand, close = _queue(args.server)
    try:
        feed = _feed(args, demand)
        once = args.once or args.dry_run
        over = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_ignored: over.set())
        last = None
        while not over.is_set():
            report = feed.look()
            # What has not changed is not said again.
            if report != last or args.json:
                _print(report, feed, as_json=args.json)
            last = report
            if once:
                return EXIT_INFRA_ERROR if report.problems else EXIT_ACCEPTED
            over.wait(args.every)
    finally:
        close()
    return EXIT_ACCEPTED


def _queue(server: str) -> tuple[Callable[[], WorkerDemand], Callable[[], None]]:
    """How the queue is asked, and how that ends."""
    from grader.settings import settings

    if server:
        from grader.cluster.service_queue import ServiceQueue

        service = ServiceQueue(server, settings().worker_token)
        return service.demand, service.close

    from grader.store.database import Store
    from grader.store.queue.worker_demand import worker_demand

    store = Store(settings().database)
    return lambda: worker_demand(store), store.close


def _feed(args: argparse.Namespace, demand: Callable[[], WorkerDemand]) -> WorkerFeed:
    import re
    import shlex
    import sys

    from grader.cluster.feed import WorkerFeed
    from grader.cluster.job_script import TEMPLATE, JobTerms, job_script
    from grader.cluster.slurm import Slurm
    from grader.errors import UsageError
    from grader.run.registry import open_runtime
    from grader.settings import settings

    limits = {
        "--most": (1, 1000),
        "--every": (1, 3600),
        "--time": (5, 10080),
        "--cpus": (1, 512),
        "--idle": (1, 3600),
    }
    for option, (least, most) in limits.items():
        number = getattr(args, option.removeprefix("--"))
        if not least <= number <= most:
            raise UsageError(f"{option} {number:g}: give a number from {least} to {most}")
    if not re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", args.prefix):
        raise UsageError(
            f"--prefix {args.prefix}: it is part of a job's name; give letters, digits and dashes"
        )
    open_runtime(args.runtime)
    logs = (args.logs or settings().state_dir / "slurm").absolute()
    try:
        logs.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--logs {logs}: it can't be made ({error.strerror})") from None
    command = args.command or f"{shlex.quote(sys.executable)} -m grader"
    terms = JobTerms(command, args.time, args.cpus, args.idle, args.runtime, args.server, logs)
    template = args.template or TEMPLATE
    # A mistake in it is told at once, not when something waits.
    job_script(terms, "gpu1", template)
    return WorkerFeed(
        demand=demand,
        slurm=Slurm(args.prefix, args.idle),
        script=lambda need: job_script(terms, need, template),
        options=tuple(args.sbatch),
        most=args.most,
        dry_run=args.dry_run,
    )


def _print(report: FeedReport, feed: WorkerFeed, *, as_json: bool) -> None:
    import json
    import time
    from dataclasses import asdict

    from grader.cluster.worker_job import JobState
    from grader.report.safe_text import one_line

    if as_json:
        scripts = {need: feed.script(need) for _job, need in report.submitted} if feed.dry_run else {}
        # One object a line: whoever reads them reads on while we feed.
        print(json.dumps({"schema": 1, **asdict(report), "scripts": scripts}), flush=True)
        return
    verb = "would submit" if feed.dry_run else "submitted"
    waiting = ", ".join(f"{number} × {need}" for need, number in report.waiting.items()) or "nothing"
    counts = f"{report.count(JobState.PENDING)} pending and {report.count(JobState.RUNNING)} running"
    print(f"{time.strftime('%H:%M:%S')}  waits: {waiting}; jobs: {counts}")
    for job_id, need in report.submitted:
        print(f"  {verb} {need}" + ("" if job_id is None else f": job {job_id}"))
    for job in report.cancelled:
        print(f"  {'would cancel' if feed.dry_run else 'cancelled'} job {job.job_id} ({job.need})")
    for job in report.jobs:
        if job.reason and job.reason not in ("Priority", "Resources"):
            print(f"  job {job.job_id} ({job.need}) waits: {one_line(job.reason)}")
    for problem in report.problems:
        print(f"  {one_line(problem)}")
    if feed.dry_run:
        for need in dict.fromkeys(need for _job, need in report.submitted):
            print(f"\n# ---- {need}\n{feed.script(need)}", end="")
    print(end="", flush=True)
