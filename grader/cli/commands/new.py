"""Write a complete course or task to start from: it proves itself as it is, and is then yours to change.

    grader new course my-course
    cd my-course
    grader verify

A course is a repository with one task, and with CI that proves it. A task has a task file with comments, a statement, a
skeleton, trusted scoring, two accepted submissions and a flawed one for each thing that it judges; it is written into
the course that one stands in.
"""

from __future__ import annotations

import argparse

NAME = "new"
ORDER = 45


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `grader new`."""
    parser.add_argument("kind", choices=("course", "task"), help="what to write")
    parser.add_argument("name", metavar="NAME", help="its name: small letters, digits, - and _")
    parser.add_argument(
        "--title", metavar="TEXT", help="what learners read first; default: the name in words"
    )


def run(args: argparse.Namespace) -> int:
    """Write it and say what to do next."""
    from grader.errors import EXIT_ACCEPTED

    (_write_course if args.kind == "course" else _write_task)(args)
    return EXIT_ACCEPTED


def _write_course(args: argparse.Namespace) -> None:
    from grader.catalog.courses.new_course import FIRST_TASK, WORKFLOWS, new_course
    from grader.cli.printing import emit_json

    folder = new_course(args.name, args.title)
    if args.json:
        emit_json({"schema": 1, "course": args.name, "folder": str(folder), "tasks": [FIRST_TASK]})
        return
    print(f"{folder}\n  course.toml        the order of the tasks, weights and dates")
    print(f"  {FIRST_TASK}/        a task, its skeleton and the submissions that prove it")
    print("  requirements.txt   the grader's version, for you and for CI")
    print(f"  {' and '.join(WORKFLOWS.values())}: CI; keep the one that you need")
    print(f"\nProve it as it is, then change it and prove it again:\n\n    cd {args.name}\n    grader verify")


def _write_task(args: argparse.Namespace) -> None:
    from grader.catalog.courses.course_file import course_files
    from grader.catalog.submissions.promised_submissions import submissions_of
    from grader.catalog.tasks.new_task import new_task
    from grader.catalog.tasks.task_folders import load_task
    from grader.cli.printing import emit_json

    folder = new_task(args.name, args.title)
    # Loaded once, so that nothing is promised that the catalog would refuse.
    task = load_task(args.name)
    promised = submissions_of(task)
    if args.json:
        document = {"schema": 1, "task": args.name, "folder": str(folder), "skeleton": str(task.skeleton)}
        emit_json(document | {"submissions": [p.name for p in promised]})
        return
    print(f"{folder}\n  task.toml      limits, data, rules, points: every table has its comment")
    print("  statement.md   what learners read")
    print("  evaluate.py    the trusted score")
    print("  skeleton/      where learners start")
    print(f"  submissions/   {len(promised)} that prove it, in folders named after the verdict they must get")
    for course in course_files()[:1]:
        print(f'\nTo set it, add it to {course}:\n\n    [[tasks]]\n    task = "{args.name}"\n    weight = 10')
    print(f"\nProve it as it is, then change it and prove it again:\n\n    grader verify {args.name}")
