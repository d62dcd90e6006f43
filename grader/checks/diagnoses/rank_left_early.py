"""Some ranks had ended while others still waited for them.

## What happened
A rank came to the end of the script, or left it with exit code 0, and another one was in a collective.

## Why
A collective needs every rank. One that has ended will never call it; depending on the backend the others wait or lose
their connection.

## Mend it
Let all ranks run the same collectives to the end; end them with `dist.barrier()` and `dist.destroy_process_group()`.
"""

from __future__ import annotations

from grader.checks.phrases import ranks
from grader.checks.run.endings.failed_run import FailedRun, positions_text
from grader.checks.run.endings.loop_divergence import shorter_loop
from grader.checks.run.endings.rank_position import Fate
from grader.model.diagnosis import Diagnosis

ORDER = 60
TOLD_BY = ("DIST003", "DIST008")


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak where some ranks ended by themselves and all others waited or lost their partner."""
    ended = [s for s in run.positions if s.fate is Fate.ENDED]
    rest = [s for s in run.positions if s.fate in (Fate.WAITED, Fate.LOST)]
    if not run.parted or not ended or not rest:
        return None
    gone = [s.rank for s in ended]
    bound, hint = shorter_loop(run.evidence.script)
    return run.parting(
        title=f"{ranks(gone)} ended while the others waited for {'it' if len(gone) == 1 else 'them'}",
        what=f"{ranks(gone)} had ended with exit code 0; {positions_text(rest)}",
        why="A collective ends only when every rank has called it, and a rank that has ended never will",
        hint=hint
        or (
            "Let all ranks take the same way through the script: no collective or training step in a branch that only "
            "some of them run, and no early `return` or `sys.exit` on one rank."
        ),
        where=(*bound, *(p for s in rest for p in s.where)),
        ranks=tuple(gone),
    )
