"""What installed packages offer under a name of ours, and where they say so."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_FILE = "entry_points.txt"


def entry_points_of(group: str) -> tuple[EntryPoint, ...]:
    """All of a group, sorted by name; nothing is imported. "" is a group of nobody."""
    if not group:
        return ()
    # Here and not above: what reads installed packages takes longer to import than all commands together.
    from importlib.metadata import entry_points

    return tuple(sorted(entry_points(group=group), key=lambda entry: (entry.name, entry.value)))


def place_of(entry: EntryPoint) -> tuple[Path, int]:
    """File and line that an entry point stands in."""
    if entry.dist is None:
        return Path(_FILE), 1
    named = next((file for file in entry.dist.files or () if file.name == _FILE), None)
    folder = getattr(entry.dist, "_path", None)  # where a package lists no files; its name is not public
    path = Path(str(named.locate())) if named is not None else Path(folder or entry.dist.name, _FILE)
    section = ""
    for number, line in enumerate((entry.dist.read_text(_FILE) or "").splitlines(), 1):
        if line.strip().startswith("["):
            section = line.strip("[] \t")
        elif section == entry.group and line.partition("=")[0].strip() == entry.name:
            return path, number
    return path, 1
