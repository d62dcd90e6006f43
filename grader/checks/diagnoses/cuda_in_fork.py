"""CUDA was used in a forked process.

## What happened
A loader worker or a forked process touched CUDA after its parent had done so.

## Why
A CUDA context does not survive a fork, which is how loader workers and many process pools start.

## Mend it
Return CPU tensors from the `Dataset` and move batches to the device in the training loop; processes of your
own start with `mp.get_context("spawn")`.
"""

from __future__ import annotations

import re

from grader.checks.run.endings.failed_run import FailedRun
from grader.model.diagnosis import Diagnosis

ORDER = 20
_WORDS = re.compile(r"Cannot re-initialize CUDA in forked subprocess")


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak where the first exception says so."""
    if run.saying(_WORDS) is None:
        return None
    return run.crash(
        title="CUDA was used in a forked process",
        what="used CUDA in a process that was forked after CUDA had started",
        why=(
            "A CUDA context does not survive a fork, which is how loader workers and many process pools start"
        ),
        hint=(
            "Return CPU tensors from the `Dataset` and move batches to the device in the "
            'training loop; processes of your own start with `mp.get_context("spawn")`.'
        ),
    )
