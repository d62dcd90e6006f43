"""Hand a script in to the service that one is signed in to, and say before that what reading it shows.

FILE is a train.py, a notebook whose cells hold it, or a folder with train.py and helper modules. What the task
asks for and the text lacks is told first; with --check that is all, and the exit code is 1 where something that must be
right is missing. What can't run is not sent, and costs no attempt. With --wait the attempt is followed to its end, and
the exit code is that of `grader grade`: 0 accepted, 1 not accepted, 4 the grader itself failed. Whatever breaks on the
way is tried again, and nothing is handed in twice. `grader login` signs in; CI jobs set GRADER_URL and GRADER_TOKEN.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

NAME = "submit"
ORDER = 34


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `grader submit`."""
    parser.add_argument("task", metavar="TASK", help="name of a task of one's course")
    parser.add_argument(
        "file", metavar="FILE", type=Path, help="train.py, a notebook or a folder that holds it"
    )
    parser.add_argument("--course", metavar="NAME", help="course, where several set this task")
    parser.add_argument(
        "--check", action="store_true", help="only say what reading it shows; hand nothing in"
    )
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
    """Check, hand in, print, and return 0, or with --wait the verdict's exit code."""
    import secrets

    from grader.catalog.submissions.learner_files import read_submission
    from grader.checks.limited_reading import AT_COMMAND, problem_within
    from grader.cli import remote, remote_grade
    from grader.client import ReadingAnswer
    from grader.errors import EXIT_ACCEPTED, UsageError

    if args.out is not None and not args.wait:
        raise UsageError("--out writes the report, which is there at the end only: say --wait, too")
    if args.check and args.wait:
        raise UsageError("--check hands nothing in, so there is nothing to --wait for")
    submission = read_submission(args.file)
    problem = problem_within(AT_COMMAND, submission)
    if problem is not None:
        raise UsageError(problem.refusal)
    if submission.left_out_note:
        print(submission.left_out_note, file=sys.stderr)
    with remote.service() as service:
        task = remote.find_task(service, args.task, args.course)
        reading = remote.check(service, task, submission, needed=args.check)
        if reading is not None and not args.json:
            remote.print_reading(reading, submission)
        if args.check and reading is not None:
            return remote.conclude_check(reading, as_json=args.json)
        handed = service.hand_in(task.id, submission, key=args.key or secrets.token_urlsafe(16))
        if not args.json:
            remote.print_handed(service, task, handed)
        if reading is None:
            told = handed.findings
            reading = ReadingAnswer(service.findings(handed.attempt_id) if told is None else told, ())
            if not args.json:
                remote.print_reading(reading, submission)
        if not args.wait:
            if args.json:
                remote.emit_handed(service, task, handed, reading)
            return EXIT_ACCEPTED
        attempt = remote.watch(service, handed.attempt_id)
        return remote_grade.conclude(service, attempt, as_json=args.json, out=args.out, submission=submission)
