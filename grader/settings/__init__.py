"""The one reader of the environment: `schema` says what every `GRADER_*` variable means, `settings` reads them once.

Nothing else in the package reads `os.environ` for configuration. Which course is meant says GRADER_TASKS_DIR, or else
where one stands, as with git.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from grader.errors import UsageError
from grader.settings.environment import given

if TYPE_CHECKING:
    from grader.settings.schema import Settings

CHECKOUT = Path(__file__).resolve().parent.parent.parent
"""Folder that the package lies in: a clone of the repository, or wherever it was installed."""

_INSTALLED = CHECKOUT / "grader" / "builtin"
BUILT_IN = _INSTALLED if _INSTALLED.is_dir() else CHECKOUT
"""Folder of `tasks`, `skeletons`, `containers` and `docs` as they come with the grader: the clone, or inside an
installed package."""

COURSE_FILE = "course.toml"
_course: ContextVar[Path | None] = ContextVar("course", default=None)


@cache
def settings() -> Settings:
    """The process's settings, read once.

    Raises:
        UsageError: a variable has a value that is none for it, or the course that one stands in is not to be trusted.
    """
    from grader.settings.schema import Settings

    try:
        return Settings.read()
    except ValueError as error:
        raise UsageError(f"A setting is wrong; change it, or unset it. {error}") from None


def language() -> str:
    """The language that this process's user reads, such as `de`, as the locale's variables say it; "" for none."""
    chosen = next(filter(None, map(os.environ.get, ("LC_ALL", "LC_MESSAGES", "LANG"))), "")
    found = re.match(r"[a-z]{2,3}(?=[_.@]|$)", chosen)
    return found[0] if found else ""


def in_notebook() -> bool:
    """Whether a notebook's kernel started this process: what it prints is kept, so nothing is painted over."""
    return "JPY_PARENT_PID" in os.environ


def draw_files() -> None:
    """Let matplotlib draw files and nothing else, whatever a notebook's kernel or a desktop chose for it."""
    os.environ["MPLBACKEND"] = "agg"


def tasks_dir() -> Path:
    """The folder of tasks: of `in_course`, or that the environment names, or that one stands in, or the built-in one.

    Raises:
        UsageError: one stands in somebody else's course. Its rules are programs, which must not run because of where
            one happens to be.
    """
    if (chosen := _course.get()) is not None:
        return chosen
    if settings.cache_info().currsize:
        return settings().tasks_dir
    told = given("tasks_dir")
    if told:
        return Path(told)
    found = course_here()
    if found is None:
        return BUILT_IN / "tasks"
    owner = (found / COURSE_FILE).stat().st_uid
    if owner not in (os.getuid(), CHECKOUT.stat().st_uid) and found != BUILT_IN / "tasks":
        raise UsageError(
            f"The course in {found} belongs to somebody else, and its rules would run as you. "
            f"If you trust it: export GRADER_TASKS_DIR={found}"
        )
    return found


@contextmanager
def in_course(tasks: Path) -> Iterator[None]:
    """Meanwhile this folder of tasks is meant, and the rules beside them: a kept version's, or a foreign course's."""
    before = _course.set(tasks)
    try:
        yield
    finally:
        _course.reset(before)


def course_given() -> bool:
    """Whether somebody said which course is meant: by GRADER_TASKS_DIR, or by where one stands."""
    return bool(given("tasks_dir")) or course_here() is not None


def course_here() -> Path | None:
    """The folder of tasks of the course that one stands in: the nearest upwards that holds `course.toml`.

    A folder `tasks` that holds one counts for the folder above it. None: one stands in no course.
    """
    try:
        here = Path.cwd()
    except FileNotFoundError:  # it was removed meanwhile
        return None
    for folder in (here, *here.parents):
        for found in (folder, folder / "tasks"):
            if (found / COURSE_FILE).is_file():
                return found
    return None
