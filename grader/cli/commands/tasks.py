"""List the tasks in the course's order, or show one: what is asked, how it is judged, what proves it.

A SUBMISSION is one of the task's own, such as `rejected/no_set_epoch`. What is a near-copy of an accepted script may be
kept as its patch, which shows the flaw alone; `--show` prints the whole script, and `--as-patch` writes the patch,
anew where the accepted script has changed.
"""

from __future__ import annotations

import argparse
import sys

NAME = "tasks"
ORDER = 40


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `grader tasks`."""
    parser.add_argument("task", metavar="TASK", nargs="?", help="show this task")
    one = parser.add_mutually_exclusive_group()
    one.add_argument("--show", metavar="SUBMISSION", help="print the whole script of one of its submissions")
    one.add_argument(
        "--as-patch",
        metavar="SUBMISSION",
        help="replace the file of one by its patch against an accepted script",
    )


def run(args: argparse.Namespace) -> int:
    """Print the list, one task, or one of its submissions."""
    from grader.catalog.course_file import DEFAULT, course_files, load_course
    from grader.catalog.tasks import find_tasks, load_task
    from grader.cli.course_printing import place_to_json, print_tasks
    from grader.cli.printing import emit_json, print_task, task_to_json
    from grader.errors import EXIT_ACCEPTED, UsageError

    if args.task is None and (args.show or args.as_patch):
        raise UsageError("name the task as well: grader tasks TASK --show SUBMISSION")
    if args.as_patch:
        return _write_patch(args)
    if args.show:
        return _show(args)
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


def _show(args: argparse.Namespace) -> int:
    """Print the files of a submission as they are handed in."""
    from grader.catalog.promised_submissions import submissions_of
    from grader.catalog.submission_selection import find_promised
    from grader.catalog.tasks import load_task
    from grader.cli.printing import emit_json, promise_to_json
    from grader.errors import EXIT_ACCEPTED

    promised = find_promised(submissions_of(load_task(args.task)), args.show)
    files = promised.submission.files
    if args.json:
        document = {"schema": 1, "task": args.task, **promise_to_json(promised)}
        emit_json(document | {"files": [{"path": file.path, "text": file.text} for file in files]})
        return EXIT_ACCEPTED
    for file in files:
        if len(files) > 1:
            print(f"==> {file.path} <==")
        sys.stdout.write(file.text)
    return EXIT_ACCEPTED


def _write_patch(args: argparse.Namespace) -> int:
    """Write a submission as a patch; the task is not loaded, as a patch that no longer applies is what may be wrong."""
    from grader.catalog.patches import write_patch
    from grader.catalog.submission_selection import named
    from grader.catalog.tasks import task_folder
    from grader.catalog.unified_diff import DiffError
    from grader.cli.printing import emit_json
    from grader.errors import EXIT_ACCEPTED, TaskError

    folder = task_folder(args.task) / "submissions"
    paths = {f"{path.parent.name}/{path.stem}": path for path in folder.glob("*/[!._]*")}
    path = paths[named(paths, args.as_patch)]
    try:
        written = write_patch(path, folder)
    except DiffError as error:
        raise TaskError(f"{path}:{error.line}: {error}.") from None
    if args.json:
        emit_json({"schema": 1, "task": args.task, "path": str(written)})
    else:
        print(written)
    return EXIT_ACCEPTED
