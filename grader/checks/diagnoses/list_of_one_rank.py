"""A rank read the list that `gather` fills on another one.

## What happened
`gather` or `gather_object` gave the ranks' values to one rank, and a line that other ranks run, too, read the list.

## Why
The list of these collectives is filled on their `dst` alone. All other ranks pass None for it, and keep that.

## Mend it
`dist.all_gather_object(parts, value)` with `parts = [None] * dist.get_world_size()` on every rank; or read the list
under a test of the rank that has it, and send on what comes of it.
"""

from __future__ import annotations

from grader.checks.run.endings.failed_run import FailedRun
from grader.checks.source.causes import stands_at
from grader.checks.source.collectives.gathered_lists import filled_everywhere, read_unfilled
from grader.model.diagnosis import Diagnosis

ORDER = 15


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak where the line that failed reads such a list."""
    script, cause = run.evidence.script, run.cause
    if cause is None or cause.type not in ("TypeError", "IndexError", "AttributeError"):
        return None
    for one in read_unfilled(script):
        if not stands_at(script, script.names.tree(one.use).statement(one.use), cause.site):
            continue
        return run.crash(
            title=f"`{one.name}` fills its list on one rank only",
            what=f"read {script.quote(one.filled)}, which `{one.name}` ({script.at(one.call)}) fills on `dst` alone,",
            why="On all other ranks the list is None, before the collective and after it",
            hint=filled_everywhere(script, one),
            details={"collective": one.name},
        )
    return None
