"""A tensor was changed before its backward pass.

## What happened
Autograd found that a tensor it had kept was overwritten between the forward and the backward pass.

## Why
Under DistributedDataParallel this is often the wrapper itself: each forward pass in training mode copies rank
0's buffers (BatchNorm's statistics) over the local ones, so that a second forward pass before the first one's
backward spoils it.

## Mend it
Run one forward pass per backward pass (put both inputs into one batch), or wrap with
`broadcast_buffers=False` or use `SyncBatchNorm`; otherwise replace in-place operations (`+=`, `relu_`) on
tensors that gradients flow through.
"""

from __future__ import annotations

import re

from grader.checks.run.endings.failed_run import FailedRun
from grader.model.diagnosis import Diagnosis

ORDER = 30
_WORDS = re.compile(r"modified by an inplace operation")


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak where the first exception says so."""
    if run.saying(_WORDS) is None:
        return None
    return run.crash(
        title="A tensor was changed before its backward pass",
        what="changed a tensor in place that the backward pass still needed",
        why=(
            "Under DistributedDataParallel this is often the wrapper itself: each forward pass "
            "in training mode copies rank 0's buffers (BatchNorm's statistics) over the local "
            "ones, so that a second forward pass before the first one's backward spoils it"
        ),
        hint=(
            "Run one forward pass per backward pass (put both inputs into one batch), or wrap "
            "with `broadcast_buffers=False` or use `SyncBatchNorm`; otherwise replace in-place "
            "operations (`+=`, `relu_`) on tensors that gradients flow through."
        ),
    )
