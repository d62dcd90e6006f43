"""The ranks lost each other, and none of them said why.

## What happened
Every rank that failed only reports that a connection was gone.

## Why
The first cause is outside what was recorded: a process group destroyed too early, or one that a rank left while others
were still in it.

## Mend it
`dist.barrier()` before `dist.destroy_process_group()`, on all ranks, as the last calls.
"""

from __future__ import annotations

from grader.checks.told.case import Case, told
from grader.model.diagnosis import Diagnosis
from grader.model.run import Ending

ORDER = 94


def diagnose(case: Case) -> Diagnosis | None:
    """Speak of a crash in which every fall is a consequence."""
    if case.ending is not Ending.CRASHED or case.cause is not None or not case.falls:
        return None
    text = told(case.stands)
    return case.parting(
        title="The ranks lost the connection to each other",
        what=text[:1].upper() + text[1:],
        why="A connection is closed when the rank at its other end leaves the group, on purpose or not, while it is "
        "still needed",
        hint="Let all ranks finish the same collectives, then `dist.barrier()`, then `dist.destroy_process_group()`.",
        where=(),
        ranks=tuple(f.rank for f in case.falls),
    )
