"""The script starts processes without `if __name__ == "__main__":`.

## What happened
A process that was started with `spawn` imported the script again, and ran it from the top: "An attempt has been made to
start a new process before the current process has finished its bootstrapping phase".

## Why
A spawned process gets its functions by importing the script. What stands outside the guard runs there as well, the
spawning included.

## Mend it
Put the start of the program below `if __name__ == "__main__":`.
"""

from __future__ import annotations

import re

from grader.checks.phrases import places
from grader.checks.run.endings.failed_run import FailedRun
from grader.model.diagnosis import Diagnosis
from grader.model.trace import Event

ORDER = 8
_WORDS = re.compile(r"before the\s+current process has finished its bootstrapping phase|freeze_support\(\)")


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak where the interpreter itself said that the guard is missing."""
    if run.saying(_WORDS) is None and run.logged(_WORDS) is None:
        return None
    started = [e for r in run.evidence.trace.ranks for e in r.events("process") if _spawned(e)]
    return run.crash(
        title='`if __name__ == "__main__":` is missing',
        what="started a process that ran the whole script again, up to this same start,",
        why=(
            "A process started with `spawn` imports the script to find its function, and without the guard that import "
            "starts processes again"
        ),
        hint='Put the start of the program below `if __name__ == "__main__":`, with only functions and classes above.',
        where=places(e.site for e in started)[:1],
    )


def _spawned(event: Event) -> bool:
    return event.fields.get("op") == "spawn"
