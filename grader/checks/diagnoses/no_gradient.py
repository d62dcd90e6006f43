"""The loss has no gradient to follow.

## What happened
`backward()` or the wrapper found nothing that requires a gradient.

## Why
Gradients flow only through operations on parameters that require them, so `torch.no_grad()`, `.detach()`,
`.item()` or a frozen model leave nothing to average.

## Mend it
Check that the training step runs outside `no_grad`, that the loss comes from the wrapped model's output, and
that parameters are frozen on purpose only.
"""

from __future__ import annotations

import re

from grader.checks.run.failed_run import FailedRun
from grader.model.diagnosis import Diagnosis

ORDER = 40
_WORDS = re.compile(
    r"does not require grad and does not have a grad_fn"
    r"|DistributedDataParallel is not needed when a module doesn't have any parameters that require a gradient"
)


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak where the first exception says so."""
    if run.saying(_WORDS) is None:
        return None
    return run.crash(
        title="The loss has no gradient to follow",
        what=f"asked for gradients where there are none (“{run.words}”)",
        why=(
            "Gradients flow only through operations on parameters that require them, so "
            "`torch.no_grad()`, `.detach()`, `.item()` or a frozen model leave nothing to "
            "average"
        ),
        hint=(
            "Check that the training step runs outside `no_grad`, that the loss comes from the "
            "wrapped model's output, and that parameters are frozen on purpose only."
        ),
    )
