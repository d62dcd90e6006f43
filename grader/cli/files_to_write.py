"""Files that somebody names to have them written: the folder for one is made, or nothing takes any time."""

from __future__ import annotations

from pathlib import Path


def make_folder_for(path: Path, option: str) -> None:
    """Make the folder that a named file goes into.

    Args:
        path: the file; option: what named it, such as `--out`.

    Raises:
        UsageError: a folder stands where the file is to be, or the folder for it cannot be made.
    """
    from grader.errors import UsageError

    if path.is_dir():
        raise UsageError(f"{option} {path}: that is a folder; name a file")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{option} {path}: no file can be written there ({error.strerror})") from None
