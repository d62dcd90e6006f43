"""The one reader of the environment: `schema` says what every `GRADER_*` variable means, `settings` reads them once.

Nothing else in the package reads `os.environ` for configuration.
"""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grader.settings.schema import Settings

CHECKOUT = Path(__file__).resolve().parent.parent.parent
"""Folder that the package lies in: a clone of the repository, or wherever it was installed."""


@cache
def settings() -> Settings:
    """The process's settings, read once."""
    from grader.settings.schema import Settings

    return Settings()


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
    """`settings().tasks_dir` alone: all settings need pydantic, which costs a linter more than reading a script."""
    if settings.cache_info().currsize or "GRADER_TASKS_DIR_FILE" in os.environ:
        return settings().tasks_dir
    return Path(os.environ.get("GRADER_TASKS_DIR", CHECKOUT / "tasks"))
