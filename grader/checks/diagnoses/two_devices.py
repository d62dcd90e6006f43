"""Tensors met on different devices.

## What happened
One operation got tensors of different devices: a batch that stayed on the CPU, a model on `cuda:0` and data
on `cuda:1`, a new tensor without `device=`.

## Why
An operation runs on one device, so the model, the batch and everything computed beside them have to be on the
rank's own.

## Mend it
Take one device per rank, `device = torch.device("cuda", local_rank)`, move the model to it before wrapping,
and each batch in the loop: `inputs, targets = inputs.to(device), targets.to(device)`.
"""

from __future__ import annotations

import re

from grader.checks.run.endings.failed_run import FailedRun
from grader.model.diagnosis import Diagnosis

ORDER = 20
_WORDS = re.compile(
    r"Expected all tensors to be on the same device"
    r"|is not on the expected device"
    r"|Input type \(torch\.cuda\.\w+\) and (weight|bias) type \(torch\.(?!cuda)\w+\)"
    r"|Input type \(torch\.(?!cuda)\w+\) and (weight|bias) type \(torch\.cuda\.\w+\)"
    r"|must have its parameters and buffers on device"
    r"|input module must be on the same type of devices"
    r"|module parameters.{0,80}live on"
    r"|but found one of them on device"
    r"|indices should be either on cpu or on the same device"
)


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak where the first exception says so."""
    if run.saying(_WORDS) is None:
        return None
    return run.crash(
        title="Tensors met on different devices",
        what=f"mixed tensors of two devices in one operation (“{run.words}”)",
        why=(
            "An operation runs on one device, so the model, the batch and everything computed "
            "beside them have to be on the rank's own"
        ),
        hint=(
            'Take one device per rank, `device = torch.device("cuda", local_rank)`, move the '
            "model to it before wrapping, and each batch in the loop: `inputs, targets = "
            "inputs.to(device), targets.to(device)`."
        ),
    )
