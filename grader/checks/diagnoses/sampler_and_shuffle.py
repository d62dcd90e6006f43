"""`DataLoader` got a sampler and `shuffle=True`.

## What happened
`DataLoader(…, shuffle=True, sampler=…)` was refused.

## Why
Only one of them can decide which sample comes next, and for several ranks that has to be the sampler, which
gives each rank its own share.

## Mend it
Drop `shuffle=True` from the `DataLoader`, let `DistributedSampler(dataset, shuffle=True)` do it, and call
`sampler.set_epoch(epoch)` in every epoch.
"""

from __future__ import annotations

import re

from grader.checks.run.endings.failed_run import FailedRun
from grader.model.diagnosis import Diagnosis

ORDER = 20
_WORDS = re.compile(
    r"sampler option is mutually exclusive with shuffle"
    r"|batch_sampler option is mutually exclusive"
)


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak where the first exception says so."""
    if run.saying(_WORDS) is None:
        return None
    return run.crash(
        title="`DataLoader` got a sampler and `shuffle=True`",
        what="gave `DataLoader` both a sampler and its own way to order the data",
        why=(
            "Only one of them can decide which sample comes next, and for several ranks that "
            "has to be the sampler, which gives each rank its own share"
        ),
        hint=(
            "Drop `shuffle=True` from the `DataLoader`, let `DistributedSampler(dataset, "
            "shuffle=True)` do it, and call `sampler.set_epoch(epoch)` in every epoch."
        ),
    )
