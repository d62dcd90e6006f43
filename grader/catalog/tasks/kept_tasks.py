"""Tasks at the versions that were used: copies in the state folder, whatever becomes of the folders they come from.

A copy is a course of one task, `<version>/tasks/<name>` and `<version>/skeletons/<name>`, with the course's own rules
beside the task. Packed, it goes where no such folder is. Only accepted submissions go along, which times are held
against. Nothing of it is ever changed; one that is not what its version says counts as missing.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import shutil
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path

from grader.catalog.courses.course_archive import MAX_TOTAL_BYTES, read_archive, write_files
from grader.catalog.submissions.promised_submissions import submissions_of
from grader.catalog.tasks.task_loading import load_task_folder, version_files
from grader.errors import InfraError, TaskError, UsageError
from grader.model.task import Task
from grader.settings import in_course, settings


def keep_task(task: Task) -> None:
    """Keep a copy of a task as it is now, unless there is one of its version.

    Raises:
        InfraError: the state folder cannot be written, or the task has been changed since it was loaded.
    """
    folder = _folder(task.version)
    if task.folder.is_relative_to(folder.parent) or folder.is_dir():
        return
    _put(task.name, task.version, _files_of(task))


def load_kept(name: str, version: str) -> Task | None:
    """The copy of that version; None: there is none.

    Raises:
        TaskError: this grader cannot read it any more.
    """
    folder = _folder(version)
    if not folder.is_dir():
        return None
    task = _load(name, folder)
    if task.version != version:
        shutil.rmtree(folder, ignore_errors=True)
        return None
    return task


def tasks_folder(task: Task) -> Path:
    """The folder of tasks that a task lies in: `in_course` of it, its own rules are known."""
    return task.folder.parent


def pack_task(task: Task) -> bytes:
    """A task as an archive, the same bytes for the same files; `unpack_task` reads it.

    Raises:
        TaskError: its submissions need mending, or it is too large.
    """
    files, packed = _files_of(task), io.BytesIO()
    if sum(map(len, files.values())) > MAX_TOTAL_BYTES:
        raise TaskError(
            f"The folder of the task {task.name} holds more than {MAX_TOTAL_BYTES >> 20} MiB, too much to be kept at "
            "each version. Let large data be prepared instead."
        )
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w") as archive,
    ):
        for path, content in files.items():
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(content), 0o644
            archive.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


def unpack_task(name: str, version: str, packed: bytes) -> Task:
    """Keep what `pack_task` made elsewhere, and load it.

    Raises:
        InfraError: it is not that version, or the state folder cannot be written.
    """
    try:
        files = read_archive(io.BytesIO(packed))
    except UsageError as error:
        raise InfraError(f"the kept copy of task {name} cannot be unpacked: {error}") from error
    return _put(name, version, files)


def changed_files(before: Task, after: Task) -> tuple[str, ...]:
    """Paths of files that two versions differ in, as people name them: `task.toml`, `skeleton/train.py`."""
    then, now = _named_files(before), _named_files(after)
    return tuple(sorted(path for path in then.keys() | now.keys() if then.get(path) != now.get(path)))


def text_files(task: Task) -> dict[str, str]:
    """The same names → text of all files of a version; of one that holds no text, its size and its digest."""
    found = {}
    for path, content in sorted(_named_files(task).items()):
        try:
            found[path] = content.decode()
        except UnicodeDecodeError:
            found[path] = f"{len(content)} bytes, SHA-256 {hashlib.sha256(content).hexdigest()}\n"
    return found


def _named_files(task: Task) -> dict[str, bytes]:
    files = version_files(task.folder, task.skeleton)
    return {path if part == "task" else f"{part}/{path}": file.read_bytes() for part, path, file in files}


def _files_of(task: Task) -> dict[str, bytes]:
    """Path in the copy → content."""
    places = {"task": f"tasks/{task.name}", "skeleton": f"skeletons/{task.name}"}
    found = {
        f"{places.get(part, f'tasks/{part}')}/{path}": file.read_bytes()
        for part, path, file in version_files(task.folder, task.skeleton)
    }
    with in_course(tasks_folder(task)):
        accepted = [one for one in submissions_of(task) if one.verdict == "accepted"]
    for place in {path for one in accepted for path in (one.path, one.base) if path is not None}:
        for file in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            found[f"{places['task']}/{file.relative_to(task.folder).as_posix()}"] = file.read_bytes()
    return dict(sorted(found.items()))


def _put(name: str, version: str, files: Mapping[str, bytes]) -> Task:
    folder = _folder(version)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=".making-", dir=folder.parent))
        try:
            write_files(files, made)
            made.chmod(0o755)
            if _load(name, made).version != version:
                raise InfraError(
                    f"the files of task {name} are not those of version {version[:12]}: somebody writes them just "
                    "now, or they were damaged on their way. Try again"
                )
            try:
                made.rename(folder)
            except OSError:
                # Somebody else was quicker.
                if not folder.is_dir():
                    raise
        finally:
            shutil.rmtree(made, ignore_errors=True)
    except OSError as error:
        raise InfraError(f"a copy of task {name} cannot be kept: {error}") from error
    kept = load_kept(name, version)
    if kept is None:
        raise InfraError(f"the copy of task {name} in {folder} has gone")
    return kept


def _load(name: str, folder: Path) -> Task:
    with in_course(folder / "tasks"):
        return load_task_folder(folder / "tasks" / name, folder / "skeletons" / name)


def _folder(version: str) -> Path:
    return settings().state_dir.absolute() / "tasks" / version
