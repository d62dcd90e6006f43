"""Begin an exam of the service that one is signed in to: one's own time runs from then on.

It is asked first how sure one is; --yes answers that. Once it has begun, this says how long it goes on. What it asks is
on its page, and `grader submit` hands in.
"""

from __future__ import annotations

import argparse
import sys

NAME = "begin"
ORDER = 33


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `grader begin`."""
    parser.add_argument("task", metavar="TASK", help="name of a task of one's course")
    parser.add_argument("--course", metavar="NAME", help="course, where several set this task")
    parser.add_argument("--yes", action="store_true", help="begin without being asked")


def run(args: argparse.Namespace) -> int:
    """Ask, begin, print when it ends."""
    from grader.cli import remote
    from grader.cli.printing import emit_json
    from grader.errors import EXIT_ACCEPTED, UsageError
    from grader.report.safe_text import one_line

    with remote.service() as service:
        task = remote.find_task(service, args.task, args.course)
        exam = service.exam(task.id)
        if exam is None:
            raise UsageError(f"{args.task} is no exam: hand in when you like, with `grader submit`")
        if exam["begun_at"] is None and not args.yes:
            if not sys.stdin.isatty():
                raise UsageError(
                    f"{args.task} runs {exam['minutes']} minutes from now on: say --yes to begin it"
                )
            print(
                f"Your {exam['minutes']} minutes run from now on, and nothing stops them. Begin? [y/N] ",
                end="",
            )
            if input().strip().casefold() not in ("y", "yes"):
                raise UsageError("nothing was begun")
        exam = service.begin_exam(task.id)
        if args.json:
            emit_json({"schema": 1, "task": task.name, "course": task.course, **exam})
        else:
            print(f"{one_line(task.title or task.name)}: your time ends {one_line(str(exam['ends_at']))}")
            print(f"{service.url}/courses/{task.course_id}/tasks/{task.id}")
    return EXIT_ACCEPTED
