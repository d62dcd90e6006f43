"""The rendezvous port was taken.

## What happened
`init_process_group` (or a store of the script's own) tried to listen on a port that another process holds.

## Why
A fixed port clashes with any other run on the same machine, and with the store that torchrun has opened
itself.

## Mend it
Leave the address to the launcher: `dist.init_process_group(backend)` without `init_method`, and never set
`MASTER_PORT` in the script.
"""

from __future__ import annotations

import re

from grader.checks.run.endings.failed_run import FailedRun
from grader.model.diagnosis import Diagnosis

ORDER = 20
_WORDS = re.compile(
    r"EADDRINUSE"
    r"|[Aa]ddress already in use"
    r"|failed to listen on any local network address"
)


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak where the first exception says so."""
    if run.saying(_WORDS) is None:
        return None
    return run.crash(
        title="The rendezvous port was taken",
        what="could not open its meeting point for the ranks, because the port was in use",
        why=(
            "A fixed port clashes with any other run on the same machine, and with the store "
            "that torchrun has opened itself"
        ),
        hint=(
            "Leave the address to the launcher: `dist.init_process_group(backend)` without "
            "`init_method`, and never set `MASTER_PORT` in the script."
        ),
    )
