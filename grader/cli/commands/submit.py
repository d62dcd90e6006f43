"""Hand a script in to the service that one is signed in to, and say at once what reading it shows.

FILE is a train.py, or a folder with train.py and helper modules. With --wait the attempt is followed to its end, and
the exit code is that of `grader grade`: 0 accepted, 1 not accepted, 4 the grader itself failed. Whatever breaks on the
way is tried again, and nothing is handed in twice. `grader login` signs in; CI jobs set GRADER_URL and GRADER_TOKEN.
"""

from __future__ import annotations

import argparse
from pathlib import Path

NAME = "submit"
ORDER = 34


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `grader submit`."""
    parser.add_argument("task", metavar="TASK", help="name of a task of one's course")
    parser.add_argument("file", metavar="FILE", type=Path, help="train.py or a folder that holds it")
    parser.add_argument("--course", metavar="NAME", help="course, where several set this task")
    parser.add_argument("--wait", action="store_true", help="follow the attempt to its end")
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="with --wait: write the report here, as HTML"
    )
    parser.add_argument(
        "--key",
        metavar="TEXT",
        help="name of this request: the same again hands nothing in twice; default: a new one",
    )


def run(args: argparse.Namespace) -> int:
    """Hand in, print, and return 0, or with --wait the verdict's exit code."""
    import secrets

    from grader.catalog import read_submission
    from grader.cli import remote
    from grader.errors import EXIT_ACCEPTED, UsageError

    if args.out is not None and not args.wait:
        raise UsageError("--out writes the report, which is there at the end only: say --wait, too")
    submission = read_submission(args.file)
    with remote.service() as service:
        task = remote.find_task(service, args.task, args.course)
        handed = service.hand_in(task.id, submission, key=args.key or secrets.token_urlsafe(16))
        if not args.json:
            remote.print_handed(service, task, handed, submission)
        if not args.wait:
            if args.json:
                remote.emit_handed(service, task, handed)
            return EXIT_ACCEPTED
        attempt = remote.watch(service, handed.attempt_id)
        return remote.conclude(service, attempt, as_json=args.json, out=args.out, submission=submission)
