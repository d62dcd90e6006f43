"""List the tasks, or show one: what is asked, how it is judged, which submissions prove it."""

from __future__ import annotations

import argparse

NAME = "tasks"
ORDER = 40


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `grader tasks`."""
    parser.add_argument("task", metavar="TASK", nargs="?", help="show this task")


def run(args: argparse.Namespace) -> int:
    """Print the list, or one task."""
    from grader.catalog import find_tasks, load_task
    from grader.cli.printing import emit_json, print_task, print_tasks, task_to_json
    from grader.errors import EXIT_ACCEPTED

    if args.task is not None:
        task = load_task(args.task)
        if args.json:
            emit_json(task_to_json(task))
        else:
            print_task(task)
        return EXIT_ACCEPTED
    tasks = [load_task(name) for name in find_tasks()]
    if args.json:
        emit_json([task_to_json(task) for task in tasks])
    else:
        print_tasks(tasks)
    return EXIT_ACCEPTED
