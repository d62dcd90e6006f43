"""One rank was busy while the others waited for it.

## What happened
At the time limit some ranks waited in a collective, and another one was at work in no collective.

## Why
Work that one rank does alone (preparing data, evaluating, saving) keeps all others waiting, and their wait ends at a
time limit: the process group's or the run's.

## Mend it
Share the work among the ranks, shorten it, or do it before the process group is needed.
"""

from __future__ import annotations

import ast

from grader.checks.phrases import ranks
from grader.checks.run.endings.failed_run import FailedRun, positions_text
from grader.checks.run.endings.rank_position import Fate
from grader.model.diagnosis import Diagnosis
from grader.model.finding import Location
from grader.model.run import Ending

ORDER = 40


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak of a time limit at which some ranks worked and others had been waiting for them."""
    if run.ending is not Ending.TIMED_OUT or run.cause is not None:
        return None
    busy = [s for s in run.positions if s.fate is Fate.WORKED and s.where]
    waiting = [s for s in run.positions if s.fate is Fate.WAITED]
    steps = {s.rank: run.evidence.rank(s.rank).last_t for s in run.positions}
    quiet_s = run.evidence.record.wall_s - max((steps[s.rank] for s in waiting), default=0.0)
    if not busy or not waiting or quiet_s < _LONG_SHARE * run.evidence.record.deadline_s:
        return None
    who = ranks(s.rank for s in busy)
    waits = next((told for s in busy for p in s.where if (told := _endless(run, p))), "")
    return run.parting(
        title=f"{who} kept the others waiting until the time limit",
        what=f"At the limit of {run.evidence.record.deadline_s:g} s {positions_text(busy)}, and "
        f"{positions_text(waiting)}, where nothing had moved for {quiet_s:.0f} s",
        why="All others wait in their next collective for what one rank does alone, and their patience has a limit",
        hint=waits
        or (
            "Share this work among the ranks, make it shorter, or do it before the run; an endless loop on one rank "
            "looks the same."
        ),
        where=tuple(p for s in busy for p in s.where),
        ranks=tuple(s.rank for s in busy),
    )


_LONG_SHARE = 0.2


def _endless(run: FailedRun, place: Location) -> str:
    """What to do about a `while` loop that a rank was still in, which waits for something that never came."""
    script = run.evidence.script
    for tree in script.trees:
        for loop in tree.loops:
            inside = loop.lineno <= place.line <= (loop.end_lineno or loop.lineno)
            if tree.path != place.path or not isinstance(loop, ast.While) or not inside:
                continue
            if script.updates.entries(loop, script.training.backwards):
                continue
            return (
                f"The loop at {script.at(loop)} goes on for ever: {script.quote(loop.test)} stays true. Leave it out, "
                "and let ranks that have to wait for each other call `dist.barrier()`, all of them."
            )
    return ""
