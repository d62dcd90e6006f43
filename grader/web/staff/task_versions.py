"""The version that a course's task is at beside the one that it could be brought to, and what differs between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from grader.catalog.tasks.kept_tasks import text_files
from grader.catalog.tasks.task_folders import find_tasks
from grader.errors import GraderError, TaskError
from grader.model.submission import SourceFile, Submission
from grader.model.task import Task
from grader.report.changes.source_changes import FileChange, SourceChanges
from grader.store.courses.courses import AssignedTask, CourseFacts
from grader.store.courses.task_versions import task_at
from grader.translation import gettext
from grader.web.lookups.folder_tasks import folder_task
from grader.web.service import WebService

_SHORT = 10


@dataclass(frozen=True, slots=True)
class AvailableVersion:
    """What a task could be brought to: what lies in its folder, or what came with its course.

    Attributes:
        task: the task at that version, None where it cannot be read; problem: why.
        newer: it differs from what the course has set.
        place: where it is, for people.
    """

    task: Task | None
    problem: str
    newer: bool
    place: str

    @property
    def short(self) -> str:
        """The version, short enough to be read out."""
        return self.task.version[:_SHORT] if self.task is not None else ""


def available_version(
    service: WebService,
    course: CourseFacts,
    task: AssignedTask,
    task_in: Callable[[str], Task] = folder_task,
) -> AvailableVersion:
    """What a course's task could be brought to now; a course from elsewhere has what its last import brought.

    `task_in`: the task in the folder of a name.
    """
    own = course.source is None
    place = (
        gettext("in the folder of tasks") if own else gettext("from {source}").format(source=course.source)
    )
    try:
        if own:
            found = task_in(task.task)
        else:
            wanted = task.offered_version or task.terms.version
            found = task_at(service.store, service.files, task.task, wanted)
    except GraderError as error:
        return AvailableVersion(None, str(error), newer=False, place=place)
    return AvailableVersion(found, "", newer=found.version != task.terms.version, place=place)


def version_changes(service: WebService, task: AssignedTask, found: Task) -> tuple[FileChange, ...] | None:
    """How the files of a version differ from those that the course has set; None: nobody kept those."""
    try:
        before = task_at(service.store, service.files, task.task, task.terms.version)
    except GraderError:
        return None
    return SourceChanges.between(_as_text(before), _as_text(found)).files()


def unset_tasks(
    tasks: tuple[AssignedTask, ...], task_in: Callable[[str], Task] = folder_task
) -> tuple[tuple[str, str, str], ...]:
    """Tasks that the course could set: name, profile, title; those whose folder has problems are left out."""
    there = {(one.task, one.profile) for one in tasks}
    found = []
    for name in find_tasks():
        try:
            task = task_in(name)
        except TaskError:
            continue
        found += [
            (name, profile.name, task.title) for profile in task.profiles if (name, profile.name) not in there
        ]
    return tuple(found)


def _as_text(task: Task) -> Submission:
    return Submission(task.name, tuple(SourceFile(path, text) for path, text in text_files(task).items()))
