"""Whether this host can judge just now: its runtime answers, its disk has room, its data is there.

Looks only. Whoever asks takes the host out of service while there is a reason to, and lets it back when there is none.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from grader.catalog.data.datasets import find_dataset
from grader.catalog.tasks.task_folders import find_tasks, load_task
from grader.errors import GraderError, UsageError
from grader.model.task import Task
from grader.run.registry import open_runtime
from grader.settings.schema import Settings


def health_problems(settings: Settings) -> tuple[str, ...]:
    """Why nothing should be judged here now; empty when all is well."""
    found = (_runtime(settings.runtime), _disk(settings.state_dir, settings.min_free_bytes), _data(settings))
    return tuple(reason for reason in found if reason)


def _runtime(name: str) -> str:
    try:
        seen = open_runtime(name).self_test()
    except GraderError as error:
        return str(error)
    return "" if seen.usable else f"the {name} runtime: {seen.reason}"


def _disk(folder: Path, min_free_bytes: int) -> str:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(folder).free
        handle, name = tempfile.mkstemp(prefix=".room-", dir=folder)
        try:
            os.write(handle, b"\0" * 4096)
        finally:
            os.close(handle)
            Path(name).unlink(missing_ok=True)
    except OSError as error:
        return f"the state folder cannot be written: {error.strerror}"
    if free < min_free_bytes:
        return f"the state folder's disk has {free >> 20} MiB left, {min_free_bytes >> 20} MiB are wanted"
    return ""


def _data(settings: Settings) -> str:
    """One task whose data is here is enough: what another one lacks is told when it is judged.

    A host without tasks gets them with the attempts.
    """
    reasons = []
    try:
        names = find_tasks()
    except UsageError:
        return ""
    for name in names:
        try:
            _find_data(load_task(name), settings)
        except (GraderError, OSError) as error:
            reasons.append(str(error))
        else:
            return ""
    return reasons[0] if reasons else ""


def _find_data(task: Task, settings: Settings) -> None:
    wanted = settings.dataset if settings.dataset in task.datasets else None
    find_dataset(task, wanted, task.profile(settings.profile))
