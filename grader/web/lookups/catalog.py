"""Tasks and courses as their files describe them, read again when one changes: pages ask for them at every visit.

A task whose folder is not on this machine, or is broken, is None: what was handed in for it is shown all the same.
"""

from __future__ import annotations

import logging
from functools import lru_cache
from pathlib import Path

from grader.catalog.course_file import course_files, load_course
from grader.catalog.tasks import load_task, skeleton_folder
from grader.errors import TaskError, UsageError
from grader.model.course import Course
from grader.model.task import Task
from grader.settings import settings
from grader.store.courses import CourseFacts

_log = logging.getLogger("grader.web")


def cached_task(name: str) -> Task | None:
    """The task of that name, or None."""
    folder = settings().tasks_dir / name
    return _load(name, _changed(folder), _changed(skeleton_folder(folder)))


def cached_course(name: str) -> Course | None:
    """The course file of that name, or None: a course may be made without one, or changed since."""
    return _load_course(name, _changed(settings().tasks_dir))


def about_course(course: CourseFacts) -> str:
    """What a course says about itself: its instructors' words, or else those of its file; "" for none."""
    if course.about is not None:
        return course.about
    planned = cached_course(course.name)
    return "" if planned is None else planned.about


@lru_cache(maxsize=32)
def _load_course(name: str, _files_changed: int) -> Course | None:
    for path in course_files():
        try:
            found = load_course(path)
        except (TaskError, UsageError) as error:
            _log.error("course file %s cannot be read: %s", path.name, error)
            continue
        if found.name == name:
            return found
    return None


@lru_cache(maxsize=256)
def _load(name: str, _task_changed: int, _skeleton_changed: int) -> Task | None:
    try:
        return load_task(name)
    except (TaskError, UsageError) as error:
        _log.error("task %s cannot be shown: %s", name, error)
        return None


def _changed(folder: Path) -> int:
    """When anything directly in the folder changed last, in nanoseconds."""
    try:
        return max((path.stat().st_mtime_ns for path in (folder, *folder.iterdir())), default=0)
    except OSError:
        return 0
