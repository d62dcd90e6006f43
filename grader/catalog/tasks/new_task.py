"""A whole task to start from: small, complete, and proved by its own submissions before its author changes a line.

Writes the files of `starter/` under a name into a course; never overwrites anything, and leaves nothing half done.
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from grader.catalog.formats.starter_files import checked_title, copy_filled, written_whole
from grader.errors import UsageError
from grader.plugins.sources import COURSE_FOLDERS

_SKELETON = "skeleton.py"


def new_task(name: str, title: str | None = None) -> Path:
    """Write the example as a task of this name into the course that one stands in, or that GRADER_TASKS_DIR names.

    Args:
        name: of its folder; title: what learners read first, the name in words by default.

    Returns:
        The task's folder; its skeleton lies in there.

    Raises:
        UsageError: there is no such course, the name is not spelled like a task's, the title holds a quote, or the
            folder is there.
        InfraError: the disk refuses.
    """
    from grader.settings import course_given, settings

    title = checked_title("task", name, title)
    if name in COURSE_FOLDERS:
        raise UsageError(
            f"{name!r} is no name for a task: {name}/ beside the tasks holds the course's own {name}."
        )
    if not course_given():
        raise UsageError(
            "A task belongs to a course, and there is none here: change to its folder (the one with course.toml), or "
            "make one with `grader new course NAME`."
        )
    folder = settings().tasks_dir / name
    folder.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(folder) as scratch:
        write_task(scratch, title, below=f"{folder.parent.name}/" if folder.parent.name == "tasks" else "")
    return folder


def write_task(folder: Path, title: str, *, below: str = "") -> None:
    """Write the example into a folder that is not there yet, and whose name is the task's.

    Args:
        folder: of the task; title: what learners read first.
        below: what stands before the folder's name, seen from the repository.
    """
    words = {"name": folder.name, "title": title, "skeleton": f"{below}{folder.name}/skeleton"}
    copy_filled(resources.files("grader.catalog") / "starter", folder, words)
    (folder / "skeleton").mkdir()
    (folder / _SKELETON).rename(folder / "skeleton" / "train.py")
