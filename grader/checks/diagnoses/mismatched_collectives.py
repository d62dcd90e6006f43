"""Ranks waited in different collectives.

## What happened
When the run was stopped, ranks stood in different calls, or in the same call at different lines.

## Why
Collectives are matched by their order alone. Each rank waits for all others in its own call, and none of them comes.

## Mend it
The same collectives in the same order and equally often on all ranks: no branches on the rank around them, loops of the
same length, decisions on values that all ranks share.
"""

from __future__ import annotations

from grader.checks.phrases import ranks
from grader.checks.run.endings.failed_run import FailedRun, positions_text
from grader.checks.run.endings.rank_position import Fate
from grader.model.diagnosis import Diagnosis
from grader.model.run import Ending

ORDER = 50
TOLD_BY = ("DIST003", "DIST008", "DIST009", "DATA005", "GRAD009")


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak of a standstill at more than one place."""
    waiting = [s for s in run.positions if s.fate is Fate.WAITED]
    if run.ending is not Ending.DEADLOCKED or run.cause is not None or len(waiting) < 2:
        return None
    if len({(s.operation, s.where) for s in waiting}) < 2:
        return None
    return run.parting(
        title=f"{ranks(s.rank for s in waiting)} waited for each other in different calls",
        what=_sentence(positions_text(run.positions)),
        why=(
            "A collective ends only when every rank has made the same call, so ranks that stand in different ones wait "
            "for each other for ever"
        ),
        hint=(
            "Follow each rank from the last line they have in common: a branch on the rank, a loop of another length, "
            "or a decision on a number of its own leads one of them to another call."
        ),
        where=tuple(p for s in waiting for p in s.where),
        ranks=tuple(s.rank for s in waiting),
    )


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
