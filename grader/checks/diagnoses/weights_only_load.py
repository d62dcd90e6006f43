"""`torch.load` refused what else is in the file.

## What happened
`torch.load` met a pickled object that is no tensor or plain container.

## Why
Unpickling other objects can run any code, so only tensors and plain containers are allowed by default.

## Mend it
Save `model.state_dict()` (and plain numbers) instead of the whole model or own classes, and load that.
"""

from __future__ import annotations

import re

from grader.checks.run.endings.failed_run import FailedRun
from grader.model.diagnosis import Diagnosis

ORDER = 20
_WORDS = re.compile(
    r"Weights only load failed"
    r"|Unsupported global: GLOBAL"
    r"|WeightsUnpickler error"
)


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak where the first exception says so."""
    if run.saying(_WORDS) is None:
        return None
    return run.crash(
        title="`torch.load` refused what else is in the file",
        what="loaded a file that holds more than tensors, which `torch.load` refuses since PyTorch 2.6",
        why=(
            "Unpickling other objects can run any code, so only tensors and plain containers "
            "are allowed by default"
        ),
        hint=(
            "Save `model.state_dict()` (and plain numbers) instead of the whole model or own "
            "classes, and load that."
        ),
    )
