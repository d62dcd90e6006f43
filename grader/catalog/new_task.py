"""A whole task to start from: small, complete, and proved by its own submissions before its author changes a line.

Writes the files of `starter/` under a name; never overwrites anything, and leaves nothing half done.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from grader.errors import InfraError, UsageError
from grader.plugins.sources import COURSE_FOLDERS

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_SUFFIX = ".txt"
_SKELETON = "skeleton.py"


def write_new_task(name: str, title: str | None = None) -> tuple[Path, Path]:
    """Write the example as a task of this name; returns its folder and its skeleton's.

    Args:
        name: of both folders; title: what learners read first, the name in words by default.

    Raises:
        UsageError: the name is not spelled like a task's, the title holds a quote, or one of the folders is there.
        InfraError: the disk refuses.
    """
    from grader.settings import settings

    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is no name for a task: use small letters, digits, - and _, beginning with a letter or a digit."
        )
    if name in COURSE_FOLDERS:
        raise UsageError(
            f"{name!r} is no name for a task: {name}/ beside the tasks holds the course's own {name}."
        )
    title = title or name.replace("-", " ").replace("_", " ").capitalize()
    if not title.isprintable() or '"' in title or "\\" in title:
        raise UsageError(f"{title!r} is no title: leave quotes, backslashes and line breaks out.")
    folders = settings().tasks_dir / name, settings().skeletons_dir / name
    for folder in folders:
        if folder.exists():
            raise UsageError(f"{folder} is there already. Choose another name, or remove it first.")
    try:
        for folder in folders:
            folder.parent.mkdir(parents=True, exist_ok=True)
        # Written beside their places and then moved there: a task is there whole or not at all.
        with tempfile.TemporaryDirectory(prefix=".new-task-", dir=folders[0].parent) as scratch:
            task, skeleton = Path(scratch, "task"), Path(scratch, "skeleton")
            _copy(resources.files("grader.catalog") / "starter", task, {"name": name, "title": title})
            skeleton.mkdir()
            (task / _SKELETON).rename(skeleton / "train.py")
            shutil.move(skeleton, folders[1])
            shutil.move(task, folders[0])
    except OSError as error:
        raise InfraError(f"The task could not be written below {folders[0].parent}: {error}") from error
    return folders


def _copy(source: Traversable, target: Path, words: dict[str, str]) -> None:
    target.mkdir()
    for entry in source.iterdir():
        if entry.is_dir():
            _copy(entry, target / entry.name, words)
        elif entry.name.endswith(_SUFFIX):
            text = entry.read_text(encoding="utf-8")
            for word, meant in words.items():
                text = text.replace("{{" + word + "}}", meant)
            (target / entry.name.removesuffix(_SUFFIX)).write_text(text, encoding="utf-8")
