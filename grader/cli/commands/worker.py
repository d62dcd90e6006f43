"""Judge what waits in the queue, on this host, until told to end.

Any number of workers on any number of hosts share one database (GRADER_DATABASE_URL), one broker (GRADER_BROKER_URL)
and one file store (GRADER_FILE_STORE). On SIGTERM a worker finishes what it has; what takes longer than --grace goes
back into the queue.

Where neither database nor broker can be reached, --server names the service and GRADER_WORKER_TOKEN (or a file,
GRADER_WORKER_TOKEN_FILE) opens it; `grader tokens issue` makes that token.

A worker that stands on borrowed time says so: --exit-when-idle ends it once nothing was there to take for so long, and
--until lets it take only what can be judged before. Such a worker asks the database by itself and needs no broker.
"""

from __future__ import annotations

import argparse

NAME = "worker"
ORDER = 82


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `grader worker`."""
    parser.add_argument(
        "--name", help="the same at every start; default: $GRADER_WORKER_NAME or the host's name"
    )
    parser.add_argument(
        "--server", metavar="URL", default="", help="ask this service instead of a database and a broker"
    )
    parser.add_argument("--slots", type=int, metavar="N", help="attempts side by side; default: 1")
    parser.add_argument("--no-cpu", action="store_true", help="take only what needs devices")
    parser.add_argument("--no-gpus", action="store_true", help="leave this host's devices alone")
    parser.add_argument(
        "--metrics-port", type=int, default=0, metavar="PORT", help="tell Prometheus figures here"
    )

    parser.add_argument(
        "--grace",
        type=float,
        default=55.0,
        metavar="S",
        help="seconds for attempts to end once told to end; then they go back (default %(default)s)",
    )
    parser.add_argument(
        "--exit-when-idle",
        type=float,
        metavar="S",
        help="end once there was nothing to take for so many seconds",
    )
    parser.add_argument(
        "--until",
        type=float,
        metavar="UNIX_TIME",
        help="take only what can be judged before then, and end once nothing can",
    )


def run(args: argparse.Namespace) -> int:
    """Work until told to end; 0 when it ended in order."""
    import platform

    from grader.errors import UsageError
    from grader.settings import settings
    from grader.worker.coordinators import wait_until_ready
    from grader.worker.logs import set_up_logs
    from grader.worker.supervisor import WorkerOptions, WorkerSupervisor

    name = args.name or settings().worker_name or platform.node() or "worker"
    if "/" in name or name.startswith("."):
        raise UsageError(f"--name {name}: it names a folder, too; give letters, digits and dashes")
    slots = args.slots if args.slots is not None else settings().worker_slots
    if not 1 <= slots <= 256:
        raise UsageError(f"--slots {slots}: give a number from 1 to 256")
    if args.exit_when_idle is not None and args.exit_when_idle <= 0:
        raise UsageError(f"--exit-when-idle {args.exit_when_idle:g}: give a number of seconds above 0")
    set_up_logs(worker=name)
    wait_until_ready(settings(), name, args.server)
    options = WorkerOptions(
        name,
        slots,
        not args.no_cpu,
        not args.no_gpus,
        args.metrics_port,
        args.grace,
        exit_when_idle_s=args.exit_when_idle,
        until=args.until,
        server=args.server,
    )
    return WorkerSupervisor(options, settings()).run()
