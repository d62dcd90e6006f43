"""NCCL needs GPUs, and this machine has none.

## What happened
`init_process_group("nccl")` ran on a machine without CUDA devices.

## Why
NCCL moves data between GPUs only, so a script that names it cannot start on a machine without them.

## Mend it
Choose the backend by what is there: `dist.init_process_group("nccl" if torch.cuda.is_available() else
"gloo")`.
"""

from __future__ import annotations

import re

from grader.checks.run.endings.failed_run import FailedRun
from grader.model.diagnosis import Diagnosis

ORDER = 15
_WORDS = re.compile(
    r"ProcessGroupNCCL is only supported with GPUs"
    r"|nccl2? requires at least one CUDA device"
    r"|doesn't have NCCL built in"
    r"|NCCL (backend )?is not available"
)


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak where the first exception says so."""
    if run.saying(_WORDS) is None:
        return None
    return run.crash(
        title="NCCL needs GPUs, and this machine has none",
        what="asked for the `nccl` backend where there is no GPU",
        why=(
            "NCCL moves data between GPUs only, so a script that names it cannot start on a "
            "machine without them"
        ),
        hint=(
            'Choose the backend by what is there: `dist.init_process_group("nccl" if '
            'torch.cuda.is_available() else "gloo")`.'
        ),
    )
