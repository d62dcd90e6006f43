"""The files of a task: all in its folder but its submissions, its skeleton and what begins with a dot."""

from __future__ import annotations

from pathlib import Path

_BESIDE = ("submissions", "skeleton")


def task_files(folder: Path) -> list[Path]:
    """Paths below the folder, sorted; caches of Python are nobody's files."""
    found = []
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        parts = path.relative_to(folder).parts
        if parts[0] not in _BESIDE and not any(p.startswith(".") or p == "__pycache__" for p in parts):
            found.append(path)
    return found
