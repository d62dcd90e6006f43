"""Tasks at the versions that courses set: kept whole in the file store, for pages and for workers without any folder.

What was judged by a version that nobody kept, before there were copies, needs the folder at that version, as ever.
"""

from __future__ import annotations

from sqlalchemy import Connection, select

from grader.catalog.tasks.kept_tasks import load_kept, pack_task, unpack_task
from grader.catalog.tasks.task_folders import load_task
from grader.model.task import Task
from grader.store.clock import database_now
from grader.store.database import Store
from grader.store.files import FileStore
from grader.store.tables import CourseTaskRow, TaskVersionRow
from grader.store.upsert import upsert


def keep_version(store: Store, files: FileStore, task: Task) -> None:
    """Keep a task at its version, unless it is.

    Raises:
        TaskError: its author has to mend it, or it is too large to be kept.
        InfraError: it cannot be written.
    """
    if is_kept(store, task.version):
        return
    packed = pack_task(task)
    values = {
        "version": task.version,
        "task": task.name,
        "digest": files.put(packed),
        "size": len(packed),
        "wall_s": {profile.name: profile.limits.wall_s for profile in task.profiles},
        "kept_at": database_now(),
    }
    with store.write() as connection:
        connection.execute(upsert(connection, TaskVersionRow, ["version"], values, update=["digest", "size"]))


def is_kept(store: Store, version: str) -> bool:
    """Whether that version is kept."""
    with store.read() as connection:
        return _digest(connection, version) is not None


def packed_version(store: Store, files: FileStore, version: str) -> bytes | None:
    """The packed copy of a version; None: nobody kept it.

    Raises:
        InfraError: it was kept, and the file store has it no more, or damaged.
    """
    with store.read() as connection:
        digest = _digest(connection, version)
    return None if digest is None else files.get(digest)


def task_at(store: Store, files: FileStore, name: str, version: str) -> Task:
    """A task at a version: its kept copy, or the folder where it is at that version.

    Raises:
        UsageError: nobody kept it, and there is no folder at that version.
        TaskError: this grader cannot read it any more. InfraError: it cannot be fetched.
    """
    if load_kept(name, version) is None and (packed := packed_version(store, files, version)) is not None:
        return unpack_task(name, version, packed)
    return load_task(name, version)


def time_limits(store: Store) -> tuple[tuple[str, str, float], ...]:
    """(task, profile, seconds that a run may take) of all that courses set at versions that are kept."""
    with store.read() as connection:
        rows = connection.execute(
            select(CourseTaskRow.task, CourseTaskRow.profile, TaskVersionRow.wall_s)
            .join(TaskVersionRow, TaskVersionRow.version == CourseTaskRow.version)
            .distinct()
        ).all()
    limits: dict[tuple[str, str], float] = {}
    for task, profile, wall_s in rows:
        # Two courses may set it at two versions: the longer one has to fit.
        limits[task, profile] = max(limits.get((task, profile), 0.0), wall_s.get(profile, 0.0))
    return tuple((task, profile, seconds) for (task, profile), seconds in sorted(limits.items()))


def _digest(connection: Connection, version: str) -> str | None:
    return connection.execute(
        select(TaskVersionRow.digest).where(TaskVersionRow.version == version)
    ).scalar_one_or_none()
