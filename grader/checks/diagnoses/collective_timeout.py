"""A rank waited too long for the others.

## What happened
The time limit of the process group ran out in a collective: the other ranks came late or not at all.

## Why
A collective ends only when every rank has called it, and the process group's time limit ran out first because
another rank was busy elsewhere or never came.

## Mend it
Let no rank work alone for long between two collectives (evaluate, tokenise or save on all ranks, or before
the group starts), check that all ranks really make this call, and raise `timeout=` in `init_process_group`
where the wait is meant.
"""

from __future__ import annotations

import re

from grader.checks.run.failed_run import FailedRun
from grader.model.diagnosis import Diagnosis

ORDER = 25
_WORDS = re.compile(
    r"Timed out waiting \d+ ?ms"
    r"|Watchdog caught collective operation timeout"
    r"|ran for \d+ milliseconds before timing out"
    r"|[Cc]ollective.{0,60}tim(ed out|eout)"
    r"|monitoredBarrier.{0,80}(timed out|failed)"
)


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak where the first exception says so."""
    if run.saying(_WORDS) is None:
        return None
    return run.crash(
        title="A rank waited too long for the others",
        what="gave up waiting for the other ranks in a collective",
        why=(
            "A collective ends only when every rank has called it, and the process group's time"
            " limit ran out first because another rank was busy elsewhere or never came"
        ),
        hint=(
            "Let no rank work alone for long between two collectives (evaluate, tokenise or "
            "save on all ranks, or before the group starts), check that all ranks really make "
            "this call, and raise `timeout=` in `init_process_group` where the wait is meant."
        ),
    )
