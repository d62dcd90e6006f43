"""There was no process group yet.

## What happened
A line asked for the process group (`DistributedDataParallel`, `DistributedSampler`, `dist.get_rank`, a
collective) before one existed.

## Why
Wrapping a model, samplers without arguments and every collective ask the process group who else is there, and
torchrun only starts the processes: it does not join them.

## Mend it
Call `dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")` once, at the start of every
rank, before the first line that needs it.
"""

from __future__ import annotations

import re

from grader.checks.phrases import places
from grader.checks.run.failed_run import FailedRun
from grader.checks.source.late_groups import moved_up
from grader.model.diagnosis import Diagnosis

ORDER = 20
_WORDS = re.compile(
    r"Default process group has not been initialized"
    r"|process group (is|was) not initialized"
    r"|Process group has not been initialized"
)


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak where the first exception says so."""
    if run.saying(_WORDS) is None:
        return None
    late, _ = moved_up(run.evidence.script, places(f for one in run.alike for f in one.frames))
    return run.crash(
        title="There was no process group yet",
        what="used torch.distributed before `dist.init_process_group` was called",
        why=(
            "Wrapping a model, samplers without arguments and every collective ask the process "
            "group who else is there, and torchrun only starts the processes: it does not join "
            "them"
        ),
        hint=late
        or (
            'Call `dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")` '
            "once, at the start of every rank, before the first line that needs it."
        ),
    )
