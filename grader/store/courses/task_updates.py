"""Updates of a course's task to another version: looked at first, in force when the staff says so.

What counts is judged by the new version in a regrade, beside what it was judged by; applying that regrade sets the
version. Until then everything that is handed in is judged by the version that is set.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, select, update

from grader.errors import UsageError
from grader.model.task import Profile, Task
from grader.store.courses.courses import AssignedTask, lock_course
from grader.store.courses.exam_freeze import refuse_during_exam
from grader.store.database import Store
from grader.store.events import audit
from grader.store.tables import CourseTaskRow


def need_of(profile: Profile) -> str:
    """What an attempt in this profile needs of a worker: `cpu`, or `gpu` with the number of devices of all its nodes.

    That many are leased on one host, whose engine starts all nodes.
    """
    return f"gpu{profile.nproc_per_node * profile.nnodes}" if profile.backend == "nccl" else "cpu"


@dataclass(frozen=True, slots=True)
class TaskUpdate:
    """A task of a course, the version that it is at, and the one that it is to be brought to, with what that needs."""

    course_task_id: int
    before: str
    version: str
    need: str


def update_to(task: AssignedTask, found: Task) -> TaskUpdate:
    """What brings a course's task to the version of `found`.

    Raises:
        UsageError: that version has no such profile any more.
    """
    profile = found.profile(task.profile)
    if profile is None:
        raise UsageError(f"The task has no profile {task.profile} any more.")
    return TaskUpdate(task.id, task.terms.version, found.version, need_of(profile))


def apply_update(
    store: Store, wanted: TaskUpdate, *, during_exam: bool = False, actor_id: int | None
) -> bool:
    """Set the version; False: the task has been brought to another one meanwhile.

    `during_exam`: even where the task is an exam that is on.

    Raises:
        ExamRunsError: it is one.
    """
    with store.write() as connection:
        return set_version(connection, wanted, during_exam=during_exam, actor_id=actor_id)


def set_version(
    connection: Connection, wanted: TaskUpdate, *, during_exam: bool = False, actor_id: int | None
) -> bool:
    """The same within a transaction of the caller's."""
    course_id = connection.execute(
        select(CourseTaskRow.course_id).where(CourseTaskRow.id == wanted.course_task_id)
    ).scalar_one_or_none()
    if course_id is None:
        return False
    lock_course(connection, course_id)
    if not during_exam:
        refuse_during_exam(connection, wanted.course_task_id)
    row = connection.execute(
        update(CourseTaskRow)
        .where(CourseTaskRow.id == wanted.course_task_id, CourseTaskRow.version == wanted.before)
        .values(version=wanted.version, need=wanted.need, offered_version=None)
        .returning(CourseTaskRow.course_id, CourseTaskRow.task)
    ).one_or_none()
    if row is None:
        return False
    audit(
        connection,
        f"course:{row.course_id}",
        "task_updated",
        actor_id=actor_id,
        task=row.task,
        before=wanted.before,
        version=wanted.version,
    )
    return True


def offer_version(store: Store, course_task_id: int, version: str | None) -> None:
    """Let a version wait for the course's staff; None: none waits."""
    with store.write() as connection:
        connection.execute(
            update(CourseTaskRow).where(CourseTaskRow.id == course_task_id).values(offered_version=version)
        )
