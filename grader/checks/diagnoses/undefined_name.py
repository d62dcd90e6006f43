"""A name was used that does not exist.

## What happened
A line read a name that nothing had set: a typo, a missing import, or an assignment that only some ranks run.

## Why
Python notices only when the line runs, so a misspelt name, a missing import, or a value that is set on rank 0
only ends the run there.

## Mend it
Import or define it above this line, on every rank: what is set under `if rank == 0:` does not exist on the
others.
"""

from __future__ import annotations

import re

from grader.checks.needed_lines import import_of
from grader.checks.run.failed_run import FailedRun
from grader.model.diagnosis import Diagnosis

ORDER = 20
_WORDS = re.compile(
    r"is not defined"
    r"|where it is not associated with a value"
    r"|referenced before assignment"
)
_NAME = re.compile(r"name '(\w+)' is not defined")


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak where the first exception says so."""
    if run.saying(_WORDS, "NameError", "UnboundLocalError") is None:
        return None
    missing = _NAME.search(run.words)
    line = import_of(missing[1]) if missing else ""
    return run.crash(
        title="A name was used that does not exist",
        what=f"used a name that was never given a value (“{run.words}”)",
        why=(
            "Python notices only when the line runs, so a misspelt name, a missing import, or a"
            " value that is set on rank 0 only ends the run there"
        ),
        hint=f"Import it at the top of the file: `{line}`."
        if line
        else (
            "Import or define it above this line, on every rank: what is set under `if rank == "
            "0:` does not exist on the others."
        ),
    )
