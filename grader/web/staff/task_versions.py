"""A course's pinned task beside the folder it comes from: is there a newer one, and what would judging again mean."""

from __future__ import annotations

from dataclasses import dataclass

from grader.catalog.tasks import find_tasks, load_task
from grader.errors import TaskError, UsageError
from grader.model.task import Task
from grader.store.courses import AssignedTask

_SHORT = 10


@dataclass(frozen=True, slots=True)
class TaskFolderState:
    """The folder of a task.

    Attributes:
        task: what lies there, None where it cannot be read; problem: why.
        newer: it differs from what the course has pinned.
    """

    task: Task | None
    problem: str
    newer: bool

    @property
    def short(self) -> str:
        """The folder's version, short enough to be read out."""
        return self.task.version[:_SHORT] if self.task is not None else ""


def folder_state(task: AssignedTask) -> TaskFolderState:
    """What lies in the folder of a course's task now."""
    try:
        found = load_task(task.task)
    except (TaskError, UsageError) as error:
        return TaskFolderState(None, str(error), newer=False)
    return TaskFolderState(found, "", newer=found.version != task.terms.version)


def unset_tasks(tasks: tuple[AssignedTask, ...]) -> tuple[tuple[str, str, str], ...]:
    """Tasks that the course could set: name, profile, title; those whose folder has problems are left out."""
    there = {(one.task, one.profile) for one in tasks}
    found = []
    for name in find_tasks():
        try:
            task = load_task(name)
        except TaskError:
            continue
        found += [
            (name, profile.name, task.title) for profile in task.profiles if (name, profile.name) not in there
        ]
    return tuple(found)
