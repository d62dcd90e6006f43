"""A course as its file describes it, put into the store: tasks at the version of their folders, dates from a first day.

What is set there is ordinary afterwards: an instructor changes it like any other course. A course that came from
elsewhere may come again, newer: then its tasks' new versions wait for the staff, and new tasks are drafts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import update

from grader.catalog.courses.course_sources import FoundCourse
from grader.catalog.tasks.task_folders import load_task
from grader.checks.diagnosis import load_explanations
from grader.checks.rule import load_rules
from grader.errors import TaskError, UsageError
from grader.model.course import Course, CourseItem
from grader.model.task import Profile, Task
from grader.store.attempts.limits import LateBank
from grader.store.clock import now
from grader.store.courses.courses import TaskTerms, add_course, courses, set_task, tasks_of
from grader.store.courses.late_days import set_late_bank
from grader.store.courses.task_updates import need_of, offer_version
from grader.store.courses.task_versions import keep_version
from grader.store.courses.task_withdrawal import removed_tasks
from grader.store.database import Store
from grader.store.events import audit
from grader.store.files import FileStore
from grader.store.tables import CourseRow
from grader.store.tables.course_task import LatePolicy


@dataclass(frozen=True, slots=True)
class TakenCourse:
    """What came of a course that was brought: names of its tasks, by what became of them.

    Attributes:
        id, name: of the course; new: it was not there before.
        set: set as its file says; added: new ones of a course that was there, as drafts.
        offered: those whose newer version waits for the staff; same: those that are as they were.
    """

    id: int
    name: str
    new: bool
    set: tuple[str, ...] = ()
    offered: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    same: tuple[str, ...] = ()

    def told(self) -> dict[str, tuple[str, ...]]:
        """For programs."""
        return {name: getattr(self, name) for name in ("set", "offered", "added", "same")}

    def lines(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """For people: what became of which tasks; what became of none is left out."""
        said = (
            ("set", self.set),
            ("a newer version waits on the settings page", self.offered),
            ("new, as drafts", self.added),
            ("as they were", self.same),
        )
        return tuple((text, names) for text, names in said if names)


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
        grace_minutes=item.grace_minutes if due_at is not None else None,
        # Until a day that never comes nothing is hidden.
        hidden_until_due=item.hidden_until_due and due_at is not None,
    )


def take_course(
    store: Store,
    files: FileStore,
    found: FoundCourse,
    *,
    name: str | None = None,
    begins_at: datetime | None = None,
    actor_id: int | None = None,
) -> TakenCourse:
    """Make a course of what was found elsewhere, or bring its newer state to where it is held already.

    Args:
        store, files: where.
        found: the course, while its files are there.
        name: under which it is held; None: as its file says.
        begins_at: the first day of a new one; None: now.
        actor_id: who brings it.

    Raises:
        UsageError: a course of that name is there and came from nowhere else, or a task is not there.
        TaskError: a task, a rule or a diagnosis needs mending; nothing was taken.
    """
    course = found.course if name is None else replace(found.course, name=name)
    there = next((one for one in courses(store) if one.name == course.name), None)
    if there is None:
        begins_at = begins_at or _now(store)
        made = import_course(store, files, course, begins_at=begins_at, source=found.told, actor_id=actor_id)
        return TakenCourse(made, course.name, new=True, set=tuple(item.task for item in course.items))
    if there.source is None:
        raise UsageError(
            f"There is a course named {course.name} that came from nowhere else; hold this one under another name."
        )
    return _update(store, files, there.id, course, found.told, actor_id)


def _now(store: Store) -> datetime:
    with store.read() as connection:
        return now(connection)


def import_course(
    store: Store,
    files: FileStore,
    course: Course,
    *,
    begins_at: datetime,
    source: str | None = None,
    actor_id: int | None = None,
) -> int:
    """Make a course from its file and return its id; `source`: where it came from, None: the folder of tasks.

    Raises:
        UsageError: there is a course of that name, or no such task.
        TaskError: a task's author has to mend something first; nothing was made.
    """
    # All tasks are read before anything is written: half a course would be worse than none.
    tasks = _read(course)
    for task in tasks.values():
        keep_version(store, files, task)
    course_id = add_course(store, course.name, course.title, actor_id=actor_id)
    for item in course.items:
        terms = task_terms(item, tasks[item.task], _profile(item, tasks), begins_at)
        set_task(store, course_id, item.task, item.profile, terms, actor_id=actor_id)
    if course.late_days:
        set_late_bank(
            store, course_id, LateBank(course.late_days, course.late_days_per_task), actor_id=actor_id
        )
    if source is not None:
        _set_source(store, course_id, course, source, actor_id)
    return course_id


def _update(
    store: Store, files: FileStore, course_id: int, course: Course, source: str, actor_id: int | None
) -> TakenCourse:
    """Newer versions wait for the course's staff; dates and limits stay theirs."""
    tasks = _read(course)
    for task in tasks.values():
        keep_version(store, files, task)
    there = {(one.task, one.profile): one for one in tasks_of(store, course_id)}
    removed = removed_tasks(store, course_id)
    offered: list[str] = []
    added: list[str] = []
    same: list[str] = []
    for item in course.items:
        found, task = there.get((item.task, item.profile)), tasks[item.task]
        if found is not None:
            newer = found.terms.version != task.version
            offer_version(store, found.id, task.version if newer else None)
            (offered if newer else same).append(item.task)
        elif (item.task, item.profile) not in removed:
            terms = task_terms(item, task, _profile(item, tasks), None)
            set_task(store, course_id, item.task, item.profile, terms, draft=True, actor_id=actor_id)
            added.append(item.task)
    _set_source(store, course_id, None, source, actor_id)
    return TakenCourse(
        course_id, course.name, new=False, offered=tuple(offered), added=tuple(added), same=tuple(same)
    )


def _set_source(
    store: Store, course_id: int, described: Course | None, source: str, actor_id: int | None
) -> None:
    words = {} if described is None else {"about": described.about}
    with store.write() as connection:
        connection.execute(update(CourseRow).where(CourseRow.id == course_id).values(source=source, **words))
        audit(connection, f"course:{course_id}", "imported", actor_id=actor_id, source=source)


def _read(course: Course) -> Mapping[str, Task]:
    """All tasks of a course by name, its rules and diagnoses looked at, too."""
    load_rules()
    load_explanations()
    tasks = {item.task: load_task(item.task) for item in course.items}
    for item in course.items:
        _profile(item, tasks)
    return tasks


def _profile(item: CourseItem, tasks: Mapping[str, Task]) -> Profile:
    profile = tasks[item.task].profile(item.profile)
    if profile is None:
        raise TaskError(f"The task {item.task} has no profile {item.profile!r}.")
    return profile
