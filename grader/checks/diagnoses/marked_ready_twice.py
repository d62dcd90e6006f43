"""A gradient was ready twice in one backward pass.

## What happened
DDP's reducer saw a parameter become ready a second time.

## Why
DistributedDataParallel starts to average a gradient when it is ready, so parameters that are used through
reentrant checkpoints, in several backward passes, or outside `forward` come a second time when they have been
sent already.

## Mend it
Use `checkpoint(…, use_reentrant=False)`; keep every use of a parameter inside one `forward` of the wrapped
model; with a graph that never changes `static_graph=True` helps as well.
"""

from __future__ import annotations

import re

from grader.checks.run.endings.failed_run import FailedRun
from grader.model.diagnosis import Diagnosis

ORDER = 20
_WORDS = re.compile(
    r"Expected to mark a variable ready only once"
    r"|has been marked as ready twice"
)


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak where the first exception says so."""
    if run.saying(_WORDS) is None:
        return None
    return run.crash(
        title="A gradient was ready twice in one backward pass",
        what="produced the same parameter's gradient twice in one backward pass of the wrapped model",
        why=(
            "DistributedDataParallel starts to average a gradient when it is ready, so "
            "parameters that are used through reentrant checkpoints, in several backward "
            "passes, or outside `forward` come a second time when they have been sent already"
        ),
        hint=(
            "Use `checkpoint(…, use_reentrant=False)`; keep every use of a parameter inside one"
            " `forward` of the wrapped model; with a graph that never changes "
            "`static_graph=True` helps as well."
        ),
    )
