"""Find tasks by name in the folder of tasks: as they are now, or at a version that was kept."""

from __future__ import annotations

import contextlib
import difflib
from pathlib import Path

from grader.catalog.submissions.promised_submissions import submissions_of
from grader.catalog.tasks.kept_tasks import load_kept
from grader.catalog.tasks.task_loading import load_task_folder
from grader.errors import GraderError, TaskError, UsageError
from grader.model.promise import PromisedSubmission
from grader.model.task import Task
from grader.plugins.sources import COURSE_FOLDERS
from grader.settings import BUILT_IN, course_given, settings, tasks_dir


def find_tasks() -> tuple[str, ...]:
    """Names of all task folders, sorted; a folder is a task when it holds `task.toml`, unless it is for plug-ins.

    Raises:
        UsageError: there is no folder of tasks.
    """
    folder = tasks_dir()
    if not folder.is_dir():
        raise UsageError(f"There is no folder of tasks at {folder}. Set GRADER_TASKS_DIR to one.")
    return tuple(
        sorted(
            p.parent.name
            for p in folder.glob("*/task.toml")
            if not p.parent.name.startswith(".") and p.parent.name not in COURSE_FOLDERS
        )
    )


def load_task(name: str, version: str | None = None) -> Task:
    """Load one task.

    Args:
        name: of its folder.
        version: which one; None: as its folder is now.

    Raises:
        UsageError: there is no such task, and the text lists those there are; or that version was never kept here.
        TaskError: the task's author has to mend something; the text names every problem with its line.
    """
    kept = None if version is None else load_kept(name, version)
    if kept is not None:
        return kept
    folder = task_folder(name)
    task = load_task_folder(folder, skeleton_folder(folder))
    if version not in (None, task.version):
        raise UsageError(
            f"Of the task {name} version {version[:12]} is wanted, which was never kept here; its folder is at "
            f"{task.version[:12]} now."
        )
    return task


def skeleton_folder(task: Path) -> Path:
    """Where a task's skeleton lies: `skeleton` in its folder, or its name in the folder of skeletons.

    Of a course that is looked at where it lies, that folder is the one beside its folder of tasks.
    """
    inside, beside = task / "skeleton", task.parent.parent / "skeletons" / task.name
    if inside.is_dir():
        return inside
    foreign = task.parent.absolute() != settings().tasks_dir.absolute()
    return beside if foreign and beside.is_dir() else settings().skeletons_dir / task.name


def tasks_with_own_data() -> tuple[Task, ...]:
    """All tasks that bring their data along; those with mistakes, which say so elsewhere, are left out."""
    found = []
    for name in find_tasks():
        with contextlib.suppress(GraderError):
            found.append(load_task(name))
    return tuple(task for task in found if task.own_data is not None)


def task_folder(name: str) -> Path:
    """The folder of a task, whatever may be wrong with what lies in it.

    Raises:
        UsageError: there is no such task; the text lists those there are.
    """
    folder, names = tasks_dir(), find_tasks()
    if name not in names:
        close = difflib.get_close_matches(name, names, n=1)
        hint = f" Did you mean {close[0]}?" if close else ""
        there = f" The tasks are: {', '.join(names)}." if names else " There are no tasks yet."
        if folder == BUILT_IN / "tasks" and not course_given():
            there = (
                " No course was found from here upwards, so the tasks that come with the grader are meant. "
                "Change to your course (the folder with course.toml), or name it: export GRADER_TASKS_DIR=FOLDER."
                f"{there}"
            )
        raise UsageError(f"There is no task {name!r}.{hint}{there}")
    return folder / name


def reference(task: Task) -> PromisedSubmission:
    """The accepted submission that stands for the task's slowest honest run when only one can be afforded.

    Raises:
        TaskError: the file named in task.toml is gone.
    """
    wanted = task.folder / "submissions" / task.reference
    for promise in submissions_of(task):
        if promise.path == wanted:
            return promise
    raise TaskError(f"The task {task.name} names a reference in task.toml that is not among its submissions.")
