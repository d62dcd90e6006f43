"""Not all ranks came to the meeting.

## What happened
A rank gave up waiting for the others in `init_process_group` or at the store.

## Why
A process group exists only once all `world_size` ranks have called `init_process_group` with the same
address, so one rank that is late, has another address, or never gets there lets the others time out.

## Mend it
Let every rank call `dist.init_process_group(backend)` at its very start, without an address of your own, and
do slow work (downloads, preparation) after it.
"""

from __future__ import annotations

import re

from grader.checks.run.endings.failed_run import FailedRun
from grader.model.diagnosis import Diagnosis

ORDER = 25
_WORDS = re.compile(
    r"clients joined"
    r"|Timed out.{0,60}(waiting for clients|rendezvous)"
    r"|[Ww]ait timeout after .{0,40}ms.{0,80}(keys|rank)"
    r"|Socket Timeout"
    r"|timed out.{0,40}trying to connect"
    r"|[Ss]tore.{0,60}(timed out|timeout)"
    r"|client socket has timed out"
)


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak where the first exception says so."""
    if run.saying(_WORDS) is None:
        return None
    return run.crash(
        title="Not all ranks came to the meeting",
        what=f"waited in vain for the other ranks to join (“{run.words}”)",
        why=(
            "A process group exists only once all `world_size` ranks have called "
            "`init_process_group` with the same address, so one rank that is late, has another "
            "address, or never gets there lets the others time out"
        ),
        hint=(
            "Let every rank call `dist.init_process_group(backend)` at its very start, without "
            "an address of your own, and do slow work (downloads, preparation) after it."
        ),
    )
