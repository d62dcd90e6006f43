"""How rows are dealt out to train, validation and hidden split, and where each split lies.

Every choice hangs on a hash of the row and a fixed seed, so that the same rows give the same splits everywhere, and
equal rows always fall on the same side.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from grader.catalog.data.versions import SEED
from grader.errors import UsageError

_HIDDEN, _VALIDATION = 0.1, 0.2
"""Shares: a row whose place lies below the first is hidden, below the second for validation."""


def folders_of(out: Path) -> dict[str, Path]:
    """The folder of each split; what scripts validate on is laid out as what is hidden."""
    visible = out / "visible"
    return {"train": visible / "train", "validation": visible / "validation", "hidden": out / "hidden"}


def divided(rows: Iterable[bytes], source: Path) -> dict[str, list[int]]:
    """Indices of the rows of each split, in order.

    Raises:
        UsageError: there are too few to divide.
    """
    found: dict[str, list[int]] = {"train": [], "validation": [], "hidden": []}
    for index, row in enumerate(rows):
        place = int.from_bytes(hashlib.sha256(SEED.encode() + row).digest()[:8]) / 2**64
        found["hidden" if place < _HIDDEN else "validation" if place < _VALIDATION else "train"].append(index)
    if not all(found.values()):
        raise UsageError(f"{source} holds too few different rows to be divided.")
    return found


def one_file(source: Path, suffix: str) -> Path:
    """A file, or the only one with this suffix in a folder.

    Raises:
        UsageError: there is none, or there are several.
    """
    found = [source] if source.is_file() else sorted(source.glob(f"*{suffix}"))
    if len(found) != 1:
        raise UsageError(f"{source} holds {len(found)} {suffix} files; give the path of one.")
    return found[0]
