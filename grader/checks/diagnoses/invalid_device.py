"""A rank asked for a GPU that does not exist.

## What happened
`cuda:N` was used with an N that is not below the number of visible GPUs.

## Why
GPUs are numbered from 0 on each machine, so the global rank (or a fixed number) leads past the last one as
soon as there are several nodes or fewer GPUs than ranks.

## Mend it
Use the number that torchrun gives each process on its machine:
`torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))`.
"""

from __future__ import annotations

import re

from grader.checks.run.endings.failed_run import FailedRun
from grader.model.diagnosis import Diagnosis

ORDER = 20
_WORDS = re.compile(
    r"invalid device ordinal"
    r"|Invalid device id"
    r"|device_ids?.{0,30}out of range"
)


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak where the first exception says so."""
    if run.saying(_WORDS) is None:
        return None
    return run.crash(
        title="A rank asked for a GPU that does not exist",
        what="asked for a GPU number that this machine does not have",
        why=(
            "GPUs are numbered from 0 on each machine, so the global rank (or a fixed number) "
            "leads past the last one as soon as there are several nodes or fewer GPUs than "
            "ranks"
        ),
        hint=(
            "Use the number that torchrun gives each process on its machine: "
            '`torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))`.'
        ),
    )
