"""A module could not be imported.

## What happened
An `import` failed on every rank.

## Why
Only Python, PyTorch, torchvision, NumPy and what the task names are installed where scripts are judged, and only the
files that were handed in are there.

## Mend it
Hand in the script's own modules with it, or do without the package.
"""

from __future__ import annotations

import re

from grader.checks.run.endings.failed_run import FailedRun
from grader.model.diagnosis import Diagnosis

ORDER = 20
_WORDS = re.compile(
    r"No module named '(?P<name>[\w.]+)'|cannot import name '(?P<part>\w+)' from '(?P<of>[\w.]+)'"
)


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak of packages and names that cannot be imported."""
    found = run.saying(_WORDS, "ModuleNotFoundError", "ImportError")
    if found is None or (found["of"] or "").startswith("torch"):
        return None
    name = found["name"] or f"{found['of']}.{found['part']}"
    return run.crash(
        title=f"`{name}` could not be imported",
        what=f"imported `{name}`, which is not there",
        why=(
            "Where scripts are judged there are PyTorch, torchvision, NumPy and the files that were handed in, and "
            "nothing else"
        ),
        hint="Hand in your own modules beside the script (the name of the file is the name of the module), or do "
        "without the package.",
        details={"module": name},
    )
