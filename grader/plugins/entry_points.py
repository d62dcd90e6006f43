"""What installed packages offer under a name of ours, and where they say so."""

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_FILE = "entry_points.txt"


def entry_points_of(group: str) -> tuple[EntryPoint, ...]:
    """All of a group, sorted by name; nothing is imported. "" is a group of nobody."""
    if not group or not _may_be_named(group):
        return ()
    # Here and not above: what reads installed packages takes longer to import than all commands together.
    from importlib.metadata import entry_points

    return tuple(sorted(entry_points(group=group), key=lambda entry: (entry.name, entry.value)))


def _may_be_named(group: str) -> bool:
    """Whether an installed package may offer something: files alone are asked, rather once too often."""
    if any(finder is not PathFinder and hasattr(finder, "find_distributions") for finder in sys.meta_path):
        return True
    for place in sys.path:
        try:
            names = os.listdir(place or ".")  # noqa: PTH208  the names alone
        except FileNotFoundError:
            continue
        except OSError:
            return True  # an archive, or what only another may read
        infos = (name for name in names if name.lower().endswith((".dist-info", "egg-info")))
        if any(_holds(f"{place or '.'}/{info}/{_FILE}", group) for info in infos):
            return True
    return False


def _holds(path: str, word: str) -> bool:
    try:
        with open(path, "rb") as file:  # noqa: PTH123  a hundred of them, most of which are not there
            return word.encode() in file.read()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True


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
