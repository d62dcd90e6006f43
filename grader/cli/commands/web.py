"""Serve pages and API alone; workers are processes of their own (`grader worker`).

GRADER_DATABASE_URL and GRADER_FILE_STORE say where everything lies, and `grader db upgrade` brings the database to this
version first. Several may serve the same database: with Redis as broker (GRADER_BROKER_URL) all of them share one count
of rate limits, without it each process counts for itself. `grader serve` is web and worker in one command.
"""

from __future__ import annotations

import argparse
import sys

NAME = "web"
ORDER = 71


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `grader web`."""
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default %(default)s)")
    parser.add_argument("--port", type=int, default=8000, help="port to listen on (default %(default)s)")
    parser.add_argument(
        "--processes",
        type=int,
        default=1,
        metavar="N",
        help="processes that share the port (default %(default)s)",
    )


def run(args: argparse.Namespace) -> int:
    """Serve until told to end."""
    from grader.errors import EXIT_ACCEPTED, InfraError, UsageError
    from grader.settings import settings
    from grader.store import schema
    from grader.web.server import run_processes, run_web
    from grader.web.service import open_service

    if not 1 <= args.processes <= 64:
        raise UsageError(f"--processes {args.processes}: give a number from 1 to 64")
    service = open_service(settings())
    problem = schema.status(service.store).problem
    if problem is not None:
        raise InfraError(problem)
    if args.processes > 1:
        service.store.close()
        if not service.rate_limiter.is_shared:
            print(
                f"grader web: {args.processes} processes count rate limits each for itself; with Redis "
                "(GRADER_BROKER_URL=redis://…) they share one count",
                file=sys.stderr,
            )
        run_processes(args.processes, host=args.host, port=args.port)
    else:
        run_web(service, host=args.host, port=args.port)
    return EXIT_ACCEPTED
