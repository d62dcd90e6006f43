"""Folders that hold what is made while attempts are judged: whoever comes to one finds nothing of those before."""

from __future__ import annotations

import shutil
from pathlib import Path


def emptied(folder: Path) -> Path:
    """The folder without anything in it, made if need be: what a killed process left lying there is nobody's."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    return folder
