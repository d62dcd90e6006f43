"""A file was written where the script may not write.

## What happened
Opening a file for writing, or making a folder, was refused.

## Why
Only the folder that `OUTPUT_DIR` names is the script's own; data, code and the system around it are read-only.

## Mend it
`torch.save(state, os.path.join(os.environ["OUTPUT_DIR"], "model.pt"))`, on rank 0.
"""

from __future__ import annotations

import re

from grader.checks.run.endings.failed_run import FailedRun
from grader.model.diagnosis import Diagnosis

ORDER = 20
_WORDS = re.compile(
    r"Read-only file system|Permission denied|open file failed with strerror: (?!No such)|cannot be opened"
)


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak of refused files and folders."""
    if run.saying(_WORDS) is None:
        return None
    return run.crash(
        title="A file could not be opened for writing",
        what=f"was refused a file (“{run.words}”)",
        why="Only the folder that `OUTPUT_DIR` names is there to be written to; data and code are not",
        hint='Save below it, on rank 0: `os.path.join(os.environ["OUTPUT_DIR"], "model.pt")`.',
    )
