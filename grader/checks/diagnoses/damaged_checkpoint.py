"""A checkpoint was read that is not whole.

## What happened
`torch.load` found a truncated or mixed-up file.

## Why
This is what a file looks like while another rank still writes it, or after several ranks wrote to the same
path at once.

## Mend it
Save on rank 0 only, then `dist.barrier()`, then load on all ranks; write to a temporary name and `os.replace`
it when it is done.
"""

from __future__ import annotations

import re

from grader.checks.run.endings.failed_run import FailedRun
from grader.model.diagnosis import Diagnosis

ORDER = 20
_WORDS = re.compile(
    r"PytorchStreamReader failed"
    r"|failed finding central directory"
    r"|[Ii]nvalid load key"
    r"|unexpected EOF"
    r"|Ran out of input"
    r"|pickle data was truncated"
)


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak where the first exception says so."""
    if run.saying(_WORDS) is None:
        return None
    return run.crash(
        title="A checkpoint was read that is not whole",
        what="read a checkpoint that is not whole",
        why=(
            "This is what a file looks like while another rank still writes it, or after "
            "several ranks wrote to the same path at once"
        ),
        hint=(
            "Save on rank 0 only, then `dist.barrier()`, then load on all ranks; write to a "
            "temporary name and `os.replace` it when it is done."
        ),
    )
