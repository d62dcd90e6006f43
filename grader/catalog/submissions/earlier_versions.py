"""What a file said in earlier commits, as git keeps it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from grader.catalog.submissions.git_output import git_output

_MOST = 200
"""Versions that are looked at: who has more has another way to an old one."""


def earlier_versions(path: Path) -> Iterator[tuple[str, str]]:
    """Commit and text of each version of a file, newest first; none where git keeps none, or is not here."""
    try:
        listed = git_output(path.parent, "log", f"--max-count={_MOST}", "--format=%h", "--", path.name)
    except FileNotFoundError:
        return
    for commit in (listed or b"").decode().split():
        content = git_output(path.parent, "show", f"{commit}:./{path.name}")
        if content is not None:
            yield commit, content.decode("utf-8", errors="replace")
