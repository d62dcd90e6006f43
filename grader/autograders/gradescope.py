"""The archive that Gradescope builds its autograder from: `setup.sh`, `run_autograder`, the grader and one task.

Gradescope unpacks it to /autograder/source, runs `setup.sh` once as root while it builds an image (Ubuntu, with a
network), and /autograder/run_autograder for each submission, which lies in /autograder/submission. What that writes to
/autograder/results/results.json is the learner's result. Limits of time and memory are the assignment's, set there.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

from grader.autograders.requirements import pinned
from grader.catalog.tasks.task_files import task_files
from grader.errors import UsageError
from grader.files import write_whole
from grader.model.task import Profile, Task
from grader.plugins.sources import COURSE_FOLDERS
from grader.settings import CHECKOUT, settings

_PROGRAMS = ("run_autograder", "setup.sh")
_NO_SOLUTION = (
    '"""Solutions stay with the course: what lies on the platform, a script that runs there could read."""\n'
)


def profile_there(task: Task, name: str) -> Profile:
    """The profile that is judged on there.

    Raises:
        UsageError: the task has none of that name, or it needs what the platform has not.
    """
    profile = task.profile(name)
    if profile is None:
        raise UsageError(f"The task {task.name} has no profile {name!r}; say --profile.")
    if profile.backend != "gloo" or profile.nnodes > 1:
        raise UsageError(
            f"Gradescope has one machine without GPUs; the profile {name} of {task.name} needs more."
        )
    return profile


def write_archive(task: Task, profile: Profile, dataset: str, out: Path) -> None:
    """Write the archive of a task.

    Args:
        task: the task; its solutions stay out.
        profile: to judge on there; dataset: to judge with there.
        out: the file, replaced where it is there.

    Raises:
        UsageError: it cannot be written.
    """
    content = io.BytesIO()
    words = {"task": task.name, "profile": profile.name, "dataset": dataset}
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for entry in sorted(
            (resources.files("grader.autograders") / "templates").iterdir(), key=lambda e: e.name
        ):
            text = entry.read_text(encoding="utf-8")
            for word, meant in words.items():
                text = text.replace("{{" + word + "}}", meant)
            _add(archive, entry.name, text.encode(), program=entry.name in _PROGRAMS)
        _add(archive, "requirements.txt", pinned("judge").encode())
        for name, path in (*_grader(), *_course(task)):
            _add(archive, name, path.read_bytes())
        _add(archive, f"course/{task.name}/submissions/{task.reference}", _NO_SOLUTION.encode())
    try:
        write_whole(out, content.getvalue())
    except OSError as error:
        raise UsageError(f"{out} cannot be written: {error.strerror}") from None


def _grader() -> Iterator[tuple[str, Path]]:
    """This package, without courses that may lie in it."""
    package = CHECKOUT / "grader"
    for path in _files(package):
        if not path.is_relative_to(package / "builtin"):
            yield path.relative_to(CHECKOUT).as_posix(), path


def _course(task: Task) -> Iterator[tuple[str, Path]]:
    """The task without its submissions, its skeleton, and the course's own rules and diagnoses."""
    for path in task_files(task.folder):
        yield f"course/{task.name}/{path.relative_to(task.folder).as_posix()}", path
    for path in _files(task.skeleton):
        yield f"course/{task.name}/skeleton/{path.relative_to(task.skeleton).as_posix()}", path
    for name in COURSE_FOLDERS:
        for path in _files(settings().tasks_dir / name):
            yield f"course/{path.relative_to(settings().tasks_dir).as_posix()}", path


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder).parts
        if path.is_file() and not any(part[0] == "." or part == "__pycache__" for part in inside):
            yield path


def _add(archive: zipfile.ZipFile, name: str, content: bytes, *, program: bool = False) -> None:
    info = zipfile.ZipInfo(name)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = (0o755 if program else 0o644) << 16
    archive.writestr(info, content)
