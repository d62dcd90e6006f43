"""Tasks at their versions and courses as their files describe them: pages ask for them at every visit.

A task that nobody kept and whose folder is not on this machine, or is broken, is None: what was handed in for it is
shown all the same.
"""

from __future__ import annotations

import logging
from functools import lru_cache
from pathlib import Path

from grader.catalog.courses.course_file import course_files, load_course
from grader.catalog.tasks.kept_tasks import load_kept
from grader.catalog.tasks.task_folders import load_task, skeleton_folder
from grader.errors import GraderError, TaskError, UsageError
from grader.model.course import Course
from grader.model.task import Task
from grader.settings import tasks_dir
from grader.store.courses.courses import CourseFacts
from grader.store.courses.task_versions import is_kept, task_at
from grader.store.database import Store
from grader.store.files import FileStore
from grader.web.service import WebService

_log = logging.getLogger("grader.web")


def cached_task(service: WebService, name: str, version: str) -> Task | None:
    """A task at the version that a course sets, or None; of one that nobody kept, what its folder holds now."""
    return task_in(service.store, service.files, name, version)


def task_in(store: Store, files: FileStore, name: str, version: str) -> Task | None:
    """The same for whoever has no service at hand."""
    try:
        return _kept(store, files, name, version) or _present_task(name)
    except GraderError as error:
        _log.error("task %s cannot be shown: %s", name, error)
        return None


def task_here(name: str, version: str) -> Task | None:
    """The same where `cached_task` was asked before, without the store."""
    return load_kept(name, version) or _present_task(name)


def _present_task(name: str) -> Task | None:
    folder = tasks_dir() / name
    return _load(name, _changed(folder), _changed(skeleton_folder(folder)))


def cached_course(course: CourseFacts) -> Course | None:
    """The file that a course was made of, or None: there may be none, or it came from elsewhere."""
    return (
        None
        if course.source is not None
        else _load_course(course.file_name or course.name, _changed(tasks_dir()))
    )


def about_course(course: CourseFacts) -> str:
    """What a course says about itself: its instructors' words, or else those of its file; "" for none."""
    if course.about is not None:
        return course.about
    planned = cached_course(course)
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


def _kept(store: Store, files: FileStore, name: str, version: str) -> Task | None:
    try:
        return _copy_here(name, version)
    except LookupError:
        return task_at(store, files, name, version) if is_kept(store, version) else None


@lru_cache(maxsize=256)
def _copy_here(name: str, version: str) -> Task:
    # Copies never change; that there is none here is not remembered.
    found = load_kept(name, version)
    if found is None:
        raise LookupError(version)
    return found


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
