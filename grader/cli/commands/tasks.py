"""List the tasks in the course's order, or show one: what is asked, how it is judged, what proves it."""

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
    from grader.catalog.course_file import DEFAULT, course_files, load_course
    from grader.cli.course_printing import place_to_json, print_tasks
    from grader.cli.printing import emit_json, print_task, task_to_json
    from grader.errors import EXIT_ACCEPTED

    if args.task is not None:
        task = load_task(args.task)
        if args.json:
            emit_json(task_to_json(task))
        else:
            print_task(task)
        return EXIT_ACCEPTED
    course = load_course() if any(path.name == DEFAULT for path in course_files()) else None
    order = [item.task for item in course.items] if course is not None else []
    names = sorted(
        find_tasks(), key=lambda name: (name not in order, order.index(name) if name in order else 0)
    )
    tasks = [load_task(name) for name in names]
    if args.json:
        emit_json([task_to_json(task) | {"course": place_to_json(course, task.name)} for task in tasks])
    else:
        print_tasks(tasks, course)
    return EXIT_ACCEPTED
