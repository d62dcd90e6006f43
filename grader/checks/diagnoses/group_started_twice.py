"""The process group was started twice.

## What happened
`dist.init_process_group` ran a second time in the same process: in a loop, in two functions, or after a
framework had done it.

## Why
There is one default group per process, and `accelerate` and `Fabric` start it themselves.

## Mend it
Call `dist.init_process_group` once, at the start, or guard it with `if not dist.is_initialized():`.
"""

from __future__ import annotations

import re

from grader.checks.run.endings.failed_run import FailedRun
from grader.model.diagnosis import Diagnosis

ORDER = 20
_WORDS = re.compile(r"trying to initialize the default process group twice")


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak where the first exception says so."""
    if run.saying(_WORDS) is None:
        return None
    return run.crash(
        title="The process group was started twice",
        what="called `init_process_group` although the process group existed already",
        why=("There is one default group per process, and `accelerate` and `Fabric` start it themselves"),
        hint=(
            "Call `dist.init_process_group` once, at the start, or guard it with `if not "
            "dist.is_initialized():`."
        ),
    )
