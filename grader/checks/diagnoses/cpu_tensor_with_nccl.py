"""NCCL was given a tensor on the CPU.

## What happened
A collective of an NCCL group got a tensor that is not on a GPU.

## Why
NCCL only moves data that lies on GPUs, and tensors made without `device=` lie on the CPU.

## Mend it
Make the tensor on the rank's device, `torch.tensor(value, device=device)`, or move it before the collective.
"""

from __future__ import annotations

import re

from grader.checks.run.endings.failed_run import FailedRun
from grader.model.diagnosis import Diagnosis

ORDER = 20
_WORDS = re.compile(
    r"No backend type associated with device type cpu"
    r"|Tensors must be CUDA and dense"
    r"|ProcessGroupNCCL only supports.{0,40}CUDA"
)


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak where the first exception says so."""
    if run.saying(_WORDS) is None:
        return None
    return run.crash(
        title="NCCL was given a tensor on the CPU",
        what="called a collective on a CPU tensor in an NCCL group",
        why=("NCCL only moves data that lies on GPUs, and tensors made without `device=` lie on the CPU"),
        hint=(
            "Make the tensor on the rank's device, `torch.tensor(value, device=device)`, or "
            "move it before the collective."
        ),
    )
