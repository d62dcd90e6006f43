"""A folder or file was there already.

## What happened
`os.mkdir`, `os.makedirs` or an exclusive `open` found that another rank (or an earlier run) had been faster.

## Why
All ranks run the same line at nearly the same time, so between a test for a folder and its making another
rank can make it.

## Mend it
Write `os.makedirs(path, exist_ok=True)`, or make it on rank 0 and let the others wait at `dist.barrier()`.
"""

from __future__ import annotations

import re

from grader.checks.run.endings.failed_run import FailedRun
from grader.model.diagnosis import Diagnosis

ORDER = 20
_WORDS = re.compile(r"File exists")


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak where the first exception says so."""
    if run.saying(_WORDS) is None:
        return None
    return run.crash(
        title="A folder or file was there already",
        what=f"tried to make something that was there already (“{run.words}”)",
        why=(
            "All ranks run the same line at nearly the same time, so between a test for a "
            "folder and its making another rank can make it"
        ),
        hint=(
            "Write `os.makedirs(path, exist_ok=True)`, or make it on rank 0 and let the others "
            "wait at `dist.barrier()`."
        ),
    )
