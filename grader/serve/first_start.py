"""What a first start lacks: tables, an administrator, a course of all tasks, data; with `--demo`, people to try it as.

Does nothing twice: what is there stays as it is. Only a task at a version that nobody kept, as it was set before copies
were, is brought to its folder's.
"""

from __future__ import annotations

import platform
from contextlib import suppress
from dataclasses import dataclass, replace

from grader.catalog.courses.course_file import load_course
from grader.catalog.data.datasets import dataset_names, prepare, prepared
from grader.catalog.tasks.task_folders import find_tasks, load_task
from grader.errors import GraderError, UsageError
from grader.model.course import CourseItem
from grader.model.task import Profile, Task
from grader.run.registry import open_runtime
from grader.settings.schema import Settings
from grader.store import schema
from grader.store.courses import courses, enrolments
from grader.store.courses.course_import import task_terms
from grader.store.courses.courses import AssignedTask, TaskTerms
from grader.store.courses.task_updates import need_of
from grader.store.courses.task_versions import is_kept, keep_version
from grader.store.courses.task_withdrawal import removed_tasks
from grader.store.database import Store
from grader.store.files import FileStore, open_files
from grader.store.people import people
from grader.store.people.people import one_time_password
from grader.store.tables.person import Role

ADMIN = "admin"
_COURSE, _TITLE = "tasks", "All tasks"
_DEMO = (
    ("learner", "Lea Learner", Role.LEARNER),
    ("instructor", "Ines Instructor", Role.INSTRUCTOR),
)


@dataclass(frozen=True, slots=True)
class FirstStart:
    """What a start found or made.

    Attributes:
        admin_password: of the administrator, to be read once; "" where there was one.
        demo: (login, password) of people to try it as.
        course: its title; tasks: names of those it sets.
        left_out: what it does not set, and why.
    """

    admin_password: str
    demo: tuple[tuple[str, str], ...]
    course: str
    tasks: tuple[str, ...]
    left_out: tuple[str, ...]


def set_up(store: Store, settings: Settings, *, demo: bool) -> FirstStart:
    """Make what is missing.

    Raises:
        InfraError: database or disk refuse; UsageError: the database is of a newer grader.
    """
    schema.upgrade(store)
    _prepare_data(settings)
    admin, password = _admin(store)
    files = open_files(store, settings.file_store, settings.state_dir / "files")
    course_id, title, tasks, left_out = _course(store, files, settings)
    _keep_versions(store, files)
    if admin is not None:
        # So that whoever runs this can hand something in at once.
        enrolments.enrol(store, course_id, admin, Role.INSTRUCTOR)
    people_made = tuple(_demo_person(store, course_id, *one) for one in _DEMO) if demo else ()
    return FirstStart(password, people_made, title, tasks, left_out)


def _admin(store: Store) -> tuple[int | None, str]:
    if people.any_admin(store):
        return None, ""
    password = one_time_password()
    login = ADMIN if people.account_by_login(store, ADMIN) is None else f"{ADMIN}-{platform.node()}"
    made = people.add_person(store, login, "Administrator", Role.ADMIN, password=password, must_change=True)
    return made, password


def _demo_person(store: Store, course_id: int, login: str, name: str, role: Role) -> tuple[str, str]:
    password = f"demo-{login}"
    found = people.account_by_login(store, f"demo-{login}")
    person_id = (
        people.add_person(store, f"demo-{login}", name, role, password=password)
        if found is None
        else found.id
    )
    enrolments.enrol(store, course_id, person_id, role)
    return f"demo-{login}", password


def _prepare_data(settings: Settings) -> None:
    """The data that comes with the program, where nothing else is there."""
    if settings.dataset is None and not any(prepared(name) for name in dataset_names()):
        prepare("digits")


def _keep_versions(store: Store, files: FileStore) -> None:
    """Keep what courses have set from the folder of tasks and nobody kept, while the folder is at that version."""
    for course in courses.courses(store):
        for one in courses.tasks_of(store, course.id):
            if course.source is None and not is_kept(store, one.terms.version):
                with suppress(GraderError):
                    keep_version(store, files, load_task(one.task, one.terms.version))


def _course(
    store: Store, files: FileStore, settings: Settings
) -> tuple[int, str, tuple[str, ...], tuple[str, ...]]:
    """The course of all tasks: made once, its tasks set at the versions that their folders have then."""
    name, title, items = _wanted()
    there = {course.name: course for course in courses.courses(store)}
    course_id = there[name].id if name in there else courses.add_course(store, name, title)
    known = {(one.task, one.profile): one for one in courses.tasks_of(store, course_id)}
    removed = removed_tasks(store, course_id)
    set_now, left_out = [], []
    spans_nodes = open_runtime(settings.runtime).spans_nodes
    for item in items:
        try:
            task = load_task(item.task)
            profile = _profile(task, settings.profile, item.profile)
        except GraderError as error:
            left_out.append(f"{item.task}: {error}")
            continue
        if profile.nnodes > 1 and not spans_nodes:
            left_out.append(f"{item.task}: needs {profile.nnodes} nodes; GRADER_RUNTIME=docker has them")
            continue
        before = known.get((task.name, profile.name))
        if before.withdrawn if before is not None else (task.name, profile.name) in removed:
            left_out.append(f"{item.task}: was taken out of the course; its settings page brings it back")
            continue
        set_now.append(task.name)
        if before is None or not is_kept(store, before.terms.version):
            keep_version(store, files, task)
            courses.set_task(store, course_id, task.name, profile.name, _terms(item, task, profile, before))
    return course_id, there[name].title if name in there else title, tuple(set_now), tuple(left_out)


def _wanted() -> tuple[str, str, list[CourseItem]]:
    """The course file's tasks in its order, then whatever else lies in the folder of tasks."""
    try:
        course = load_course()
    except GraderError:
        return _COURSE, _TITLE, [CourseItem(name, "", 1.0) for name in find_tasks()]
    named = {item.task for item in course.items}
    more = [CourseItem(name, "", 0.0, required=False) for name in find_tasks() if name not in named]
    return course.name, course.title, [*course.items, *more]


def _profile(task: Task, wanted: str, otherwise: str) -> Profile:
    profile = task.profile(wanted) or task.profile(otherwise)
    if profile is None:
        raise UsageError(f"it has no profile {wanted!r}")
    return profile


def _terms(item: CourseItem, task: Task, profile: Profile, before: AssignedTask | None) -> TaskTerms:
    if before is None:
        return task_terms(item, task, profile, None)
    # Dates and limits are the instructor's by now.
    return replace(before.terms, version=task.version, title=task.title, need=need_of(profile))
