"""Files that are whole or not there: written beside their place, and put there when they are.

A reader meets the old file or the new one, never half of one; a write that fails leaves nothing behind. Does not make
folders, and does not wait for the disk.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path


def write_whole(path: Path, data: str | bytes, *, mode: int = 0o644) -> None:
    """Write a file in the place of the one that may be there; text as UTF-8.

    Args:
        path: in a folder that exists.
        data: all of it.
        mode: its permissions, whatever the umask says; nobody else can read it before they are set.

    Raises:
        OSError: it cannot be written; what was there before still is.
    """
    with _beside(path, data, mode) as made:
        made.replace(path)


def write_once(path: Path, data: str | bytes, *, mode: int = 0o644) -> None:
    """Like `write_whole` where there is no file yet: of several who write at once, the first one's stays.

    Raises:
        OSError: it cannot be written.
    """
    with _beside(path, data, mode) as made, contextlib.suppress(FileExistsError):
        os.link(made, path)


def clear_halves(path: Path) -> None:
    """Remove what writers of this file left who were killed; for whoever knows that nobody is writing it now."""
    for half in path.parent.glob(f".{path.name}-*"):
        half.unlink(missing_ok=True)


@contextlib.contextmanager
def _beside(path: Path, data: str | bytes, mode: int) -> Iterator[Path]:
    content = data.encode() if isinstance(data, str) else data
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    made = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, mode)
            file.write(content)
        yield made
    finally:
        # Gone already where it was moved.
        made.unlink(missing_ok=True)
