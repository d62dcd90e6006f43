"""What a file said in earlier commits, as git keeps it; asks git and changes nothing."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

_TIMEOUT_S = 60.0
_MOST = 200
"""Versions that are looked at: who has more has another way to an old one."""


def earlier_versions(path: Path) -> Iterator[tuple[str, str]]:
    """Commit and text of each version of a file, newest first; none where git keeps none, or is not here."""
    listed = _git(path.parent, "log", f"--max-count={_MOST}", "--format=%h", "--", path.name)
    for commit in (listed or b"").decode().split():
        content = _git(path.parent, "show", f"{commit}:./{path.name}")
        if content is not None:
            yield commit, content.decode("utf-8", errors="replace")


def _git(folder: Path, *arguments: str) -> bytes | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, timeout=_TIMEOUT_S, check=False
        )
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
