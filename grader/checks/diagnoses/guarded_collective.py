"""A collective was called under a test of the rank.

## What happened
Some ranks called `barrier`, `all_reduce` or another collective below a test such as `if rank == 0:`; the others went
past it and on to something else.

## Why
A collective ends only when every rank of the group has called it.

## Mend it
Call it on all ranks; put under the test only what one rank does alone, such as printing the result.
"""

from __future__ import annotations

from grader.checks.phrases import ranks
from grader.checks.run.endings.failed_run import FailedRun, named, positions_text
from grader.checks.run.endings.rank_position import operation_name
from grader.checks.run.endings.stuck_ranks import guarded_ranks, stuck_ranks
from grader.model.diagnosis import Diagnosis
from grader.model.finding import Location

ORDER = 32
TOLD_BY = ("DIST003",)


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak of ranks that wait in a collective which a rank test keeps from the others."""
    if run.cause is not None:
        return None
    numbers = {s.rank for s in guarded_ranks(stuck_ranks(run.evidence))}
    guarded = [s for s in run.positions if s.rank in numbers and not s.inside_wrapper]
    if not guarded:
        return None
    first = guarded[0]
    test = first.guard
    under = _under(run, test, first.where) if test is not None else ""
    rest = [s for s in run.positions if s.rank not in numbers]
    who = ranks(numbers)
    return run.parting(
        title=f"{who} called a collective that the others never reach",
        what=f"{who} waited in {operation_name(first.operation)}{named(first.where)}{under}; {positions_text(rest)}",
        why="A collective ends only when every rank has called it, and the test keeps the other ranks from this one",
        hint="Move the call out of the test, so that all ranks make it, and keep under the test what one rank does "
        "alone (printing, saving).",
        where=first.where,
        ranks=tuple(numbers),
    )


def _under(run: FailedRun, test: Location, where: tuple[Location, ...]) -> str:
    """The test as written, and whether it leads there by being false."""
    script = run.evidence.script
    line = script.line(test.path, test.line).strip().replace("`", "'")
    tree = next(t for t in script.trees if t.path == test.path)
    other = any(
        node.test.lineno == test.line and node.orelse and node.orelse[0].lineno <= where[0].line
        for node in tree.ifs
        if where and where[0].path == test.path and where[0].line <= (node.end_lineno or 0)
    )
    return f", under {'the `else` of ' if other else ''}`{line[:80]}` at `{test}`"
