"""Nothing moved any more, and no rank could say why.

## What happened
All ranks that were left stood still in a call that waits for somebody else, and nothing came for seconds.

## Why
A rank waits for a message, a key in the store or a process that never comes.

## Mend it
Look at the line where it waits: who was to send, set or end what it waits for?
"""

from __future__ import annotations

from grader.checks.run.endings.failed_run import FailedRun, positions_text
from grader.model.diagnosis import Diagnosis
from grader.model.run import Ending

ORDER = 92
TOLD_BY = ("DIST003", "DIST008", "DIST009", "GRAD009")


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak of any standstill."""
    if run.ending is not Ending.DEADLOCKED or run.cause is not None:
        return None
    text = positions_text(run.positions)
    return run.parting(
        title="The ranks stood still",
        what=text[:1].upper() + text[1:],
        why="Nothing was computed, sent or printed any more, so what they waited for was never going to come",
        hint=(
            "Ask at this line who was to answer: the other ranks' same call, a `send` for this `recv`, a key that "
            "somebody sets, or a process that was to end."
        ),
        where=(),
        ranks=tuple(s.rank for s in run.positions if s.operation),
    )
