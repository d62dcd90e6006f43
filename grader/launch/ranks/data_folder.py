"""The data folder of one run: files of its own, and links to what all runs share.

What is shared is never copied and lies outside of the folder; neither can be written by ranks that are another user.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path


def files_below(folder: Path) -> list[str]:
    """Paths of all files below a folder, sorted; what begins with a dot is nobody's data."""
    found = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return sorted(path.as_posix() for path in found if not any(part[0] == "." for part in path.parts))


def lay_out_data(folder: Path, shared: Iterable[str], target: str, own: Mapping[str, bytes]) -> None:
    """Fill an empty folder, and close it to writers.

    Args:
        folder: becomes $DATA_DIR.
        shared: paths that become links to the same path below `target`, which need not exist where this is called.
        target: absolute; own: contents by path.

    Raises:
        OSError: the machine refuses.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name in shared:
        if name not in own:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(f"{target}/{name}")
    for name, content in own.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(0o444)
    for path in sorted((folder, *folder.rglob("*")), reverse=True):
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o555)
