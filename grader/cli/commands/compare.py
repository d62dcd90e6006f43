"""Show what changed between an attempt and an earlier one, on the service that one is signed in to.

Which findings went and which came, what both attempts count as, and a diff of what was handed in. Without OTHER it is
the attempt before, without ATTEMPT one's latest that was judged.
"""

from __future__ import annotations

import argparse

NAME = "compare"
ORDER = 37


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `grader compare`."""
    parser.add_argument(
        "attempt", metavar="ATTEMPT", type=int, nargs="?", help="its number; default: the latest"
    )
    parser.add_argument(
        "other",
        metavar="OTHER",
        type=int,
        nargs="?",
        help="what to compare with; default: the attempt before",
    )


def run(args: argparse.Namespace) -> int:
    """Fetch and print; 0 when there was something to compare."""
    from grader.cli import remote
    from grader.cli.change_printing import print_changes
    from grader.cli.printing import emit_json
    from grader.errors import EXIT_ACCEPTED

    with remote.service() as service:
        attempt_id = remote.latest_judged(service) if args.attempt is None else args.attempt
        changes = service.changes(attempt_id, args.other)
    if args.json:
        emit_json({"schema": 1, **changes.fields})
    else:
        print_changes(changes)
    return EXIT_ACCEPTED
