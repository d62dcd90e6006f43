"""Ranks exchanged tensors that did not fit each other.

## What happened
One rank sent more or fewer bytes, or another type, than its partner expected in the same collective.

## Why
`all_reduce`, `broadcast` and `all_gather` take tensors of one shape and type on every rank; and collectives are matched
by their order alone, so a rank that is one call ahead delivers the wrong thing.

## Mend it
The same calls in the same order, with equal shapes; gather lengths first and pad where sizes differ, or use
`all_gather_object`.
"""

from __future__ import annotations

from grader.checks.phrases import ranks
from grader.checks.run.endings.failed_run import FailedRun, positions_text
from grader.model.diagnosis import Diagnosis

ORDER = 45
TOLD_BY = ("DIST003", "DIST008", "DIST009")


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak where the backend itself says that sizes or calls do not fit."""
    if not run.disagreed or run.cause is None:
        return None
    failed = run.alike
    rest = [s for s in run.positions if s.rank not in {f.rank for f in failed}]
    line = f" at `{failed[0].site.path}:{failed[0].site.line}`" if failed[0].site is not None else ""
    how = f"ended by {failed[0].signal}" if failed[0].signal else f"ended by {failed[0].type}"
    others = f"; {positions_text(rest, then=True)}" if rest else ""
    return run.parting(
        title="What one rank sent was not what another expected",
        what=f"{ranks(f.rank for f in failed)} got data of another size than expected in a collective{line} and was "
        f"{how}{others}",
        why=(
            "Collectives are matched by their order alone and need tensors of equal shape and type on all ranks, so a "
            "different size, or a rank that is one call ahead, mixes up two messages"
        ),
        hint=(
            "Let all ranks make the same calls in the same order with tensors of one shape and `dtype`; where lengths "
            "differ, exchange them first and pad, or use `dist.all_gather_object`."
        ),
        where=tuple(p for f in failed for p in f.where),
        ranks=tuple(f.rank for f in failed),
        details={"message": run.cause.message[:400]},
    )
