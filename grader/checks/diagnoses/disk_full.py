"""There was no room left to write.

## What happened
A write failed because the disk was full or the file larger than one file may be.

## Why
Each run has a limit on what it may write. Every rank saving its own copy of each epoch uses it up `world_size` times
as fast.

## Mend it
Save on rank 0 only, the last or the best state, as `state_dict`.
"""

from __future__ import annotations

import re

from grader.checks.run.endings.failed_run import FailedRun
from grader.model.diagnosis import Diagnosis

ORDER = 22
_WORDS = re.compile(
    r"No space left on device|File too large|Disk quota exceeded|file write failed|PytorchStreamWriter failed"
)
_SAVES = 2


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak of full disks and over-large files, and of how many ranks wrote."""
    if run.saying(_WORDS) is None:
        return None
    saving = [r.rank for r in run.evidence.trace.ranks if r.saves]
    many = f", after {sum(len(r.saves) for r in run.evidence.trace.ranks)} checkpoints of {len(saving)} ranks"
    return run.crash(
        title="There was no room left to write",
        what=f"could not write any more (“{run.words}”)" + (many if len(saving) >= _SAVES else ""),
        why="What one run may write is limited, and every rank that saves a copy of its own uses it up faster",
        hint="Save on rank 0 only, and only what is needed: `model.module.state_dict()` of the last or the best epoch.",
    )
