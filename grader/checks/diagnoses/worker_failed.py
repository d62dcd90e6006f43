"""A data loader's worker raised an exception.

## What happened
`__getitem__`, a transform or the collate function failed inside a worker process; the loader raised it again in the
rank.

## Why
The rank that asked for the batch ends, and the others wait for it in their next collective.

## Mend it
Mend the line in the data set; with `num_workers=0` the error appears without the detour.
"""

from __future__ import annotations

import re

from grader.checks.run.endings.failed_run import FailedRun
from grader.checks.run.endings.rank_failure import shown
from grader.model.diagnosis import Diagnosis
from grader.model.finding import Location

ORDER = 12
_WORDS = re.compile(r"Caught (?P<type>\w+) in DataLoader worker process \d+")
_FRAME = re.compile(r'^[ \t]*File "(?P<path>[^"\n]+)", line (?P<line>\d{1,9}), in ', re.MULTILINE)


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak of the line inside the worker, not of the loop that asked for the batch."""
    found = run.saying(_WORDS)
    if found is None or run.cause is None:
        return None
    message = run.cause.message
    inside = [(m["path"], int(m["line"])) for m in _FRAME.finditer(message)]
    own = [
        Location(path, line)
        for path, line in inside
        if run.evidence.script.submission.text(path) is not None and line > 0
    ]
    last = message.strip().splitlines()[-1]
    said = f" (“{shown(last)}”)" if last.startswith(found["type"]) else ""
    return run.crash(
        title="A data loader's worker raised an exception",
        what=f"got `{found['type']}` from a worker of the data loader{said}",
        why=(
            "The exception is raised again where the batch was asked for, which ends the rank, and the others cannot "
            "finish a step without it"
        ),
        hint=(
            "Mend the line in the data set, transform or collate function; with `num_workers=0` it fails in the "
            "rank itself, where it is easier to look at."
        ),
        where=tuple(dict.fromkeys((*own[-1:], *run.cause.where))),
    )
