"""A data loader's worker was killed.

## What happened
A worker process went away without an exception: killed for memory, by a crash in a C library, or by `os._exit`.

## Why
The rank cannot get its batch and ends; the others wait for it.

## Mend it
Fewer workers, less memory per worker (no copies of the data set in `__init__`), and `num_workers=0` to see the error.
"""

from __future__ import annotations

import re

from grader.checks.run.endings.failed_run import FailedRun
from grader.model.diagnosis import Diagnosis

ORDER = 14
_WORDS = re.compile(
    r"DataLoader worker \(pid(?:\(s\))? [\d, ]+\) "
    r"(?:is killed by signal: (?P<signal>[\w ]+)|exited unexpectedly)"
)


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak of a worker that ended without an exception."""
    found = run.saying(_WORDS)
    if found is None:
        return None
    how = f"was killed ({found['signal'].strip()})" if found["signal"] else "ended without a word"
    return run.crash(
        title="A data loader's worker was killed",
        what=f"lost a worker of the data loader, which {how},",
        why=(
            "A worker that ends like this was killed for its memory or crashed inside a library, and the rank that "
            "waits for its batch ends with it"
        ),
        hint=(
            "Use fewer workers and keep large arrays out of each worker's own copy; run once with `num_workers=0`, "
            "where the error shows in the rank itself."
        ),
    )
