"""`device_ids` was given for a network on the CPU.

## What happened
`DistributedDataParallel(model, device_ids=[…])` was called while the network's parameters were on the CPU (or
on several devices).

## Why
`device_ids` names the GPU that the network lies on, and on the CPU there is none.

## Mend it
Give it on GPUs only: `DistributedDataParallel(model, device_ids=[local_rank] if torch.cuda.is_available()
else None)`; and move the model to its device before wrapping it.
"""

from __future__ import annotations

import re

from grader.checks.run.endings.failed_run import FailedRun
from grader.model.diagnosis import Diagnosis

ORDER = 20
_WORDS = re.compile(r"device_ids and output_device arguments only work with")


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak where the first exception says so."""
    if run.saying(_WORDS) is None:
        return None
    return run.crash(
        title="`device_ids` was given for a network on the CPU",
        what="wrapped a network on the CPU with `device_ids`",
        why=("`device_ids` names the GPU that the network lies on, and on the CPU there is none"),
        hint=(
            "Give it on GPUs only: `DistributedDataParallel(model, device_ids=[local_rank] if "
            "torch.cuda.is_available() else None)`; and move the model to its device before "
            "wrapping it."
        ),
    )
