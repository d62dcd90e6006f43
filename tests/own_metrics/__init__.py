"""A course of one task that is about no classes and no accuracy: a regression, judged by two metrics of its own."""

from __future__ import annotations

import shutil
from pathlib import Path

HERE = Path(__file__).parent
SCRIPT = HERE / "forecast" / "submissions" / "accepted" / "distributed_sampler.py"


def write_course(home: Path) -> Path:
    """Lay the task out below `tasks` and `skeletons`; returns its folder."""
    folder = home / "tasks" / "forecast"
    shutil.copytree(HERE / "forecast", folder)
    shutil.copytree(HERE / "skeletons", home / "skeletons", dirs_exist_ok=True)
    return folder
