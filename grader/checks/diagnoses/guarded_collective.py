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

from grader.checks.blocked import guarded_ranks, stuck_ranks
from grader.checks.case import Case, named, told
from grader.checks.quote import ranks
from grader.checks.stand import operation_name
from grader.model.diagnosis import Diagnosis

ORDER = 32


def diagnose(case: Case) -> Diagnosis | None:
    """Speak of ranks that wait in a collective which a rank test keeps from the others."""
    if not case.parted:
        return None
    numbers = {s.rank for s in guarded_ranks(stuck_ranks(case.seen))}
    guarded = [s for s in case.stands if s.rank in numbers and not s.inside_wrapper]
    if not guarded:
        return None
    first = guarded[0]
    test = first.guard
    line = case.seen.script.line(test.path, test.line).strip().replace("`", "'") if test is not None else ""
    under = f" under `{line[:80]}` in line {test.line}" if test is not None else ""
    rest = [s for s in case.stands if s.rank not in numbers]
    who = ranks(numbers)
    return case.parting(
        title=f"{who} called a collective that the others never reach",
        what=f"{who} waited in {operation_name(first.operation)}{named(first.where)},{under}; {told(rest)}",
        why="A collective ends only when every rank has called it, and the test keeps the other ranks from this one",
        hint="Move the call out of the test, so that all ranks make it, and keep under the test what one rank does "
        "alone (printing, saving).",
        where=first.where,
        ranks=tuple(numbers),
    )
