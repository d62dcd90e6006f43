"""Two ranks used the same GPU.

## What happened
NCCL found two ranks on one device.

## Why
NCCL gives every rank a device of its own, and without `torch.cuda.set_device` all ranks land on `cuda:0`.

## Mend it
Set the device before anything touches CUDA: `torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))`, then
`device_ids=[local_rank]` for the wrapper.
"""

from __future__ import annotations

import re

from grader.checks.run.endings.failed_run import FailedRun
from grader.model.diagnosis import Diagnosis

ORDER = 20
_WORDS = re.compile(
    r"Multiple Ranks are using the same GPU"  # NCCL 2.30 and newer
    r"|Duplicate GPU detected"
)


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak where the first exception says so."""
    if run.saying(_WORDS) is None:
        return None
    return run.crash(
        title="Two ranks used the same GPU",
        what="shared a GPU with another rank in one NCCL group",
        why=(
            "NCCL gives every rank a device of its own, and without `torch.cuda.set_device` all"
            " ranks land on `cuda:0`"
        ),
        hint=(
            "Set the device before anything touches CUDA: "
            '`torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))`, then '
            "`device_ids=[local_rank]` for the wrapper."
        ),
    )
