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

from grader.checks.run.endings.failed_run import FailedRun, positions_text
from grader.model.diagnosis import Diagnosis
from grader.model.run import Ending

ORDER = 94


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak of a crash in which every failure is a consequence."""
    if run.ending is not Ending.CRASHED or run.cause is not None or not run.failures:
        return None
    text = positions_text(run.positions)
    return run.parting(
        title="The ranks lost the connection to each other",
        what=text[:1].upper() + text[1:],
        why="A connection is closed when the rank at its other end leaves the group, on purpose or not, while it is "
        "still needed",
        hint="Let all ranks finish the same collectives, then `dist.barrier()`, then `dist.destroy_process_group()`.",
        where=(),
        ranks=tuple(f.rank for f in run.failures),
    )
