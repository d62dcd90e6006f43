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

from grader.checks.told.case import Case
from grader.model.diagnosis import Diagnosis

ORDER = 20
_WORDS = re.compile(
    r"Duplicate GPU detected"
    r"|ncclInvalidUsage.{0,200}Duplicate GPU"
)


def diagnose(case: Case) -> Diagnosis | None:
    """Speak where the first exception says so."""
    if case.saying(_WORDS) is None:
        return None
    return case.crash(
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
