"""List the tasks in the course's order, or show one: what is asked, how it is judged, what proves it.

With `--notebook` a task comes as a notebook to work in: what is asked, the skeleton in a cell that writes it, and cells
that lint, judge and hand in.

A SUBMISSION is one of the task's own, such as `rejected/no_set_epoch`. What is a near-copy of an accepted script may be
kept as its patch, which shows the flaw alone; `--show` prints the whole script, and `--as-patch` replaces the script by
its patch, or writes the patch anew where the accepted script has changed.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grader.model.task import Task

NAME = "tasks"
ORDER = 40


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `grader tasks`."""
    parser.add_argument("task", metavar="TASK", nargs="?", help="show this task")
    one = parser.add_mutually_exclusive_group()
    one.add_argument("--show", metavar="SUBMISSION", help="print the whole script of one of its submissions")
    one.add_argument(
        "--notebook",
        metavar="FILE",
        nargs="?",
        type=Path,
        const=Path(),
        help="write the task as a notebook to work in; default: TASK.ipynb here",
    )
    one.add_argument(
        "--as-patch",
        metavar="SUBMISSION",
        help="replace the script of one, which is removed, by its patch against an accepted script",
    )
    parser.add_argument(
        "--language",
        metavar="CODE",
        help="language of the statement, such as de; default: the locale's, and English where there is no other",
    )


def run(args: argparse.Namespace) -> int:
    """Print the list, one task, or one of its submissions."""
    from grader.catalog.courses.course_file import DEFAULT, course_files, load_course
    from grader.catalog.tasks.task_folders import find_tasks, load_task
    from grader.cli.course_printing import place_to_json, print_tasks
    from grader.cli.printing import emit_json, print_task, task_to_json
    from grader.errors import EXIT_ACCEPTED, UsageError

    if args.task is None and (args.show or args.as_patch or args.notebook):
        raise UsageError("name the task as well: grader tasks TASK --show SUBMISSION")
    if args.as_patch:
        return _write_patch(args)
    if args.show:
        return _show(args)
    if args.notebook is not None:
        return _write_notebook(args)
    if args.task is not None:
        task = load_task(args.task)
        if args.json:
            emit_json(task_to_json(task))
        else:
            print_task(task, _statement(task, args.language))
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


def _statement(task: Task, language: str | None) -> str:
    """What is asked, in the language that was named, or the user's."""
    from grader.errors import UsageError
    from grader.settings import language as own_language

    found = task.told_in([language or own_language()])
    if language is not None and found.language != language:
        known = ", ".join(("en", *(one.language for one in task.translations)))
        raise UsageError(f"the statement of {task.name} is not told in {language!r}; there is {known}")
    return found.text


def _write_notebook(args: argparse.Namespace) -> int:
    """Write the task as a notebook; never over a file, which may hold somebody's work."""
    from grader.catalog.tasks.task_folders import load_task
    from grader.cli.files_to_write import make_folder_for
    from grader.cli.printing import emit_json
    from grader.errors import EXIT_ACCEPTED, UsageError
    from grader.notebooks.lab import lab_notebook

    task = load_task(args.task)
    path: Path = args.notebook if args.notebook.name else Path(f"{task.name}.ipynb")
    if path.suffix != ".ipynb":
        raise UsageError(f"{path} does not end in .ipynb, by which Jupyter knows a notebook")
    make_folder_for(path, "--notebook")
    text = lab_notebook(task, _statement(task, args.language))
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(f"{path} is there already and may hold your work; name another file") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from None
    if args.json:
        emit_json({"schema": 1, "task": task.name, "path": str(path)})
    else:
        print(path)
    return EXIT_ACCEPTED


def _show(args: argparse.Namespace) -> int:
    """Print the files of a submission as they are handed in.

    For people the task is not loaded: a patch whose base has changed, which no task may have, is shown as it was.
    """
    from grader.catalog.submissions.learner_files import read_submission
    from grader.catalog.submissions.patches import SUFFIX, read_outdated_patch
    from grader.catalog.submissions.unified_diff import DiffError
    from grader.errors import EXIT_ACCEPTED, TaskError

    if args.json:
        return _show_as_json(args)
    path, folder, _ = _own_submission(args.task, args.show, rather=SUFFIX)
    if path.suffix != SUFFIX:
        submission = read_submission(path)
    else:
        try:
            patched = read_outdated_patch(path, folder)
        except DiffError as error:
            raise TaskError(f"{path}:{error.line}: {error}.") from None
        submission = patched.submission
        if patched.commit:
            print(
                f"grader: {patched.base} has changed since this patch was made; this is the whole script with "
                f"what it said in commit {patched.commit}",
                file=sys.stderr,
            )
    for file in submission.files:
        if len(submission.files) > 1:
            print(f"==> {file.path} <==")
        sys.stdout.write(file.text)
    return EXIT_ACCEPTED


def _show_as_json(args: argparse.Namespace) -> int:
    from grader.catalog.submissions.promised_submissions import submissions_of
    from grader.catalog.submissions.submission_selection import find_promised
    from grader.catalog.tasks.task_folders import load_task
    from grader.cli.printing import emit_json, promise_to_json
    from grader.errors import EXIT_ACCEPTED

    promised = find_promised(submissions_of(load_task(args.task)), args.show)
    document = {"schema": 1, "task": args.task, **promise_to_json(promised)}
    files = [{"path": file.path, "text": file.text} for file in promised.submission.files]
    emit_json(document | {"files": files})
    return EXIT_ACCEPTED


def _own_submission(task: str, wanted: str, *, rather: str) -> tuple[Path, Path, str]:
    """Its path, the folder of submissions, and its name; `rather`: the suffix that counts where there are two files."""
    from grader.catalog.submissions.submission_selection import named
    from grader.catalog.tasks.task_folders import task_folder

    folder = task_folder(task) / "submissions"
    there = sorted(folder.glob("*/[!._]*"), key=lambda path: path.suffix == rather)
    paths = {f"{path.parent.name}/{path.stem}": path for path in there}
    name = named(paths, wanted)
    return paths[name], folder, name


def _write_patch(args: argparse.Namespace) -> int:
    """Write a submission as a patch; the task is not loaded, as a patch that no longer applies is what may be wrong."""
    from grader.catalog.submissions.patches import write_patch
    from grader.catalog.submissions.unified_diff import DiffError, MismatchError
    from grader.cli.printing import emit_json
    from grader.errors import EXIT_ACCEPTED, TaskError

    path, folder, name = _own_submission(args.task, args.as_patch, rather=".py")
    try:
        written = write_patch(path, folder)
    except MismatchError as error:
        raise TaskError(
            f"{path}:{error.line}: {error}. Get the whole script as it was, mend it, and make the patch of that:\n\n"
            f"    grader tasks {args.task} --show {name} > {path.with_suffix('.py')}\n"
            f"    grader tasks {args.task} --as-patch {name}"
        ) from None
    except DiffError as error:
        raise TaskError(f"{path}:{error.line}: {error}.") from None
    if args.json:
        emit_json({"schema": 1, "task": args.task, "path": str(written)})
        return EXIT_ACCEPTED
    print(written)
    if path != written:
        print(
            f"grader: it replaces {path.name}, which is removed; `grader tasks {args.task} --show {name}` prints the "
            "whole script",
            file=sys.stderr,
        )
    return EXIT_ACCEPTED
