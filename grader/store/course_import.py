"""A course as its file describes it, put into the store: tasks at the version of their folders, dates from a first day.

What is set there is ordinary afterwards: an instructor changes it like any other course.
"""

from __future__ import annotations

from datetime import datetime

from grader.catalog.tasks import load_task
from grader.errors import TaskError
from grader.model.course import Course, CourseItem
from grader.model.task import Profile, Task
from grader.store.courses import TaskTerms, add_course, set_task
from grader.store.database import Store
from grader.store.tables.course_task import LatePolicy


def need_of(profile: Profile) -> str:
    """What an attempt in this profile needs of a worker: `cpu`, or `gpu` with the number of devices of all its nodes.

    That many are leased on one host, whose engine starts all nodes.
    """
    return f"gpu{profile.nproc_per_node * profile.nnodes}" if profile.backend == "nccl" else "cpu"


def task_terms(item: CourseItem, task: Task, profile: Profile, begins_at: datetime | None) -> TaskTerms:
    """On what terms a course file sets a task.

    Args:
        item: its place in the file.
        task, profile: as the task's folder has them.
        begins_at: the course's first day, from which dates are counted; None: it has none, and so have its tasks.
    """
    due_at = None if begins_at is None or item.due is None else begins_at + item.due
    return TaskTerms(
        title=task.title,
        version=task.version,
        need=need_of(profile),
        weight=item.weight,
        required=item.required,
        opens_at=begins_at + item.opens if begins_at is not None and item.opens else None,
        due_at=due_at,
        late_policy=LatePolicy(item.late),
        late_loss=item.late_loss,
        late_days=item.late_days,
        max_per_day=item.max_per_day,
        max_total=item.max_total,
        # Until a day that never comes nothing is hidden.
        hidden_until_due=item.hidden_until_due and due_at is not None,
    )


def import_course(store: Store, course: Course, *, begins_at: datetime, actor_id: int | None = None) -> int:
    """Make a course from its file and return its id.

    Raises:
        UsageError: there is a course of that name, or no such task.
        TaskError: a task's author has to mend something first; nothing was made.
    """
    # All tasks are read before anything is written: half a course would be worse than none.
    terms = [(item, _read(item, begins_at)) for item in course.items]
    course_id = add_course(store, course.name, course.title, actor_id=actor_id)
    for item, one in terms:
        set_task(store, course_id, item.task, item.profile, one, actor_id=actor_id)
    return course_id


def _read(item: CourseItem, begins_at: datetime) -> TaskTerms:
    task = load_task(item.task)
    profile = task.profile(item.profile)
    if profile is None:
        raise TaskError(f"The task {item.task} has no profile {item.profile!r}.")
    return task_terms(item, task, profile, begins_at)
