"""`SyncBatchNorm` needs GPUs, and the network was on the CPU.

## What happened
A network with `SyncBatchNorm` layers was wrapped by `DistributedDataParallel`, or given images, on the CPU.

## Why
Those layers have their ranks agree on mean and variance, and PyTorch has that for GPUs alone.

## Mend it
Convert where there are GPUs only: `if torch.cuda.is_available(): model =
nn.SyncBatchNorm.convert_sync_batchnorm(model)`. On the CPU each rank's `BatchNorm` then takes the statistics of its own
batch.
"""

from __future__ import annotations

import re

from grader.checks.run.endings.failed_run import FailedRun
from grader.model.diagnosis import Diagnosis
from grader.model.finding import Location

ORDER = 20
_WORDS = re.compile(r"SyncBatchNorm (layers only work with|expected input tensor to be on) GPU")


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak where the first exception says so."""
    if run.saying(_WORDS) is None:
        return None
    return run.crash(
        title="`SyncBatchNorm` needs GPUs, and this machine has none",
        what="used `SyncBatchNorm` on the CPU",
        why="its ranks agree on mean and variance of a batch, and PyTorch has that for GPUs alone",
        hint=(
            "Convert where there are GPUs only: `if torch.cuda.is_available(): model = "
            "nn.SyncBatchNorm.convert_sync_batchnorm(model)`."
        ),
        where=_converted(run),
    )


def _converted(run: FailedRun) -> tuple[Location, ...]:
    script = run.evidence.script
    return tuple(script.location(call) for name, call in script.calls_under("torch.nn.SyncBatchNorm") if name)
