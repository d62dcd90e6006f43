"""Tasks as their folders are now, read again only when a file in one has changed: settings ask for all of them."""

from __future__ import annotations

import contextlib
import os
from functools import lru_cache
from pathlib import Path

from grader.catalog.tasks.task_folders import load_task, skeleton_folder
from grader.errors import GraderError
from grader.model.task import Task
from grader.settings import tasks_dir

Files = tuple[tuple[str, int, int], ...]


def folder_task(name: str) -> Task:
    """The task in the folder of that name.

    Raises:
        UsageError, TaskError: as `load_task` says; that is remembered, too, until a file changes.
    """
    folder = tasks_dir() / name
    found = _load(name, _files(folder), _files(skeleton_folder(folder)))
    if isinstance(found, GraderError):
        raise found
    return found


@lru_cache(maxsize=256)
def _load(name: str, _task: Files, _skeleton: Files) -> Task | GraderError:
    try:
        return load_task(name)
    except GraderError as error:
        return error


def _files(folder: str | Path) -> Files:
    """Every file below: its path, when it changed, in nanoseconds, and its size."""
    found: list[tuple[str, int, int]] = []
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for one in entries:
            if one.is_dir(follow_symlinks=False):
                found += _files(one.path) if one.name != "__pycache__" else ()
                continue
            with contextlib.suppress(OSError):
                stat = one.stat()
                found.append((one.path, stat.st_mtime_ns, stat.st_size))
    return tuple(sorted(found))
