"""A rank raised an exception.

## What happened
An exception that nothing caught ended a rank, or all of them at the same line.

## Why
Where all ranks fail at once, the mistake is in the line itself. Where one fails, its data, its rank or its device was
different; the others then wait for it or lose their connection, and what they report is only the consequence.

## Mend it
Start with the rank that failed first.
"""

from __future__ import annotations

from grader.checks.phrases import ranks
from grader.checks.run.endings.failed_run import FailedRun
from grader.model.diagnosis import Diagnosis

ORDER = 95


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak of any exception that no other explanation knows."""
    cause = run.cause
    if cause is None:
        return None
    failed = [f.rank for f in run.alike]
    name = cause.type or "an error"
    said = f" (“{run.words}”)" if run.words else ""
    if len(failed) == run.evidence.world_size:
        everyone = "All ranks raised" if len(failed) > 1 else "The script raised"
        title = f"{everyone} {name}"
        why = "Every rank ran into it, so it has nothing to do with the rank: the line, or what reaches it, is wrong"
        hint = "Mend this line; `torchrun --nproc_per_node=1 train.py` fails in the same way, with one traceback."
    else:
        title = f"{ranks(failed)} raised {name}; the others needed {'it' if len(failed) == 1 else 'them'}"
        why = (
            "A step of the wrapped model and every collective need all ranks, so the error of one ends the run for "
            "all, and what the others report is only the consequence"
        )
        hint = "Mend this line first, and ask what was different there: its data, its number, its device."
    return run.crash(title=title, what=f"raised {name}{said}", why=why, hint=hint)
