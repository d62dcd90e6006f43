"""A loader had no batch to give.

## What happened
A loop over a loader ran no times, and the line that counts on its results failed: it divided by the number of batches,
or read a name that only the loop would have set.

## Why
A rank's share was smaller than a batch and `drop_last=True` dropped it, or nothing fell to the rank.

## Mend it
Leave out `drop_last=True`, or take batches that are no larger than a rank's share.
"""

from __future__ import annotations

import re
from dataclasses import replace

from grader.checks.phrases import at, place
from grader.checks.run.data.empty_loaders import empty_loaders
from grader.checks.run.endings.failed_run import FailedRun
from grader.model.diagnosis import Diagnosis

ORDER = 60
_WORDS = re.compile(
    r"division by zero|total_steps|steps_per_epoch|empty sequence|empty iterable|expected a non-empty"
    r"|not associated with a value|referenced before assignment|is not defined|not enough values|StopIteration|^$"
)
_TYPES = (
    "NameError", "RuntimeError", "StopIteration", "StatisticsError", "UnboundLocalError", "ValueError",
    "ZeroDivisionError",
)  # fmt: skip


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak where a rank failed over what an empty loop left, and its loader was empty."""
    if run.saying(_WORDS, *_TYPES) is None or run.cause is None:
        return None
    failed = run.cause.rank
    found = [one for one in empty_loaders(run.evidence.trace, built=True) if failed in one.ranks]
    if not found:
        return None
    empty = found[0]
    diagnosis = run.crash(
        title="A loader had no batch to give",
        what=f"raised {run.cause.type} (“{run.words}”)",
        why=(
            f"The loader at {at(empty.loader.site, 'an unknown line')} gave no batch, so a loop over it runs no times: "
            f"{empty.cause}"
        ),
        hint=empty.cure,
    )
    return replace(diagnosis, where=tuple(dict.fromkeys((*place(empty.loader.site), *diagnosis.where))))
