"""Something could not be sent to another process.

## What happened
An object on its way to a spawned process (loader worker, `mp.spawn`) could not be pickled.

## Why
Processes started with `spawn` get their data set, collate function and arguments as pickles, and lambdas,
local functions, open files and generators cannot be pickled.

## Mend it
Define the function or class at the top level of the module, and open files inside `__getitem__` or
`worker_init_fn`.
"""

from __future__ import annotations

import re

from grader.checks.run.endings.failed_run import FailedRun
from grader.model.diagnosis import Diagnosis

ORDER = 20
_WORDS = re.compile(
    r"[Cc]an't pickle"
    r"|Can't get local object"
    r"|[Cc]annot pickle"
    r"|Can't get attribute '"
)


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak where the first exception says so."""
    if run.saying(_WORDS) is None:
        return None
    return run.crash(
        title="Something could not be sent to another process",
        what=f"handed something to a new process that cannot be pickled (“{run.words}”)",
        why=(
            "Processes started with `spawn` get their data set, collate function and arguments "
            "as pickles, and lambdas, local functions, open files and generators cannot be "
            "pickled"
        ),
        hint=(
            "Define the function or class at the top level of the module, and open files inside"
            " `__getitem__` or `worker_init_fn`."
        ),
    )
