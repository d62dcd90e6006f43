"""Show how attempts stand on the service that one is signed in to: one of them, or one's latest.

With --wait an attempt that is not over is followed to its end, and the exit code is that of `grader grade`.
"""

from __future__ import annotations

import argparse

NAME = "status"
ORDER = 35


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `grader status`."""
    parser.add_argument(
        "attempt", metavar="ATTEMPT", type=int, nargs="?", help="its number; default: the latest ones"
    )
    parser.add_argument("--wait", action="store_true", help="follow it to its end")


def run(args: argparse.Namespace) -> int:
    """Print; 0, or with --wait the verdict's exit code."""
    from grader.cli import remote, remote_grade
    from grader.errors import EXIT_ACCEPTED, UsageError

    if args.wait and args.attempt is None:
        raise UsageError("say which attempt to wait for: `grader status ATTEMPT --wait`")
    with remote.service() as service:
        if args.attempt is None:
            remote.print_attempts(service, service.attempts(), as_json=args.json)
        elif args.wait:
            attempt = remote.watch(service, args.attempt)
            return remote_grade.conclude(service, attempt, as_json=args.json)
        else:
            remote.print_attempts(service, (service.attempt(args.attempt),), as_json=args.json)
    return EXIT_ACCEPTED
