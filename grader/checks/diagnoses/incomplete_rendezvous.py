"""Some ranks waited in `init_process_group` for ranks that never came there.

## What happened
At least one rank had called `init_process_group` and waited; another one was somewhere else.

## Why
A group comes into being only when all ranks have joined it.

## Mend it
Call `dist.init_process_group(backend)` first thing on every rank, outside every test of the rank.
"""

from __future__ import annotations

from grader.checks.case import Case, named, told
from grader.checks.quote import ranks
from grader.model.diagnosis import Diagnosis
from grader.model.run import Ending

ORDER = 28
_JOINING = "rendezvous (init_process_group)"


def diagnose(case: Case) -> Diagnosis | None:
    """Speak of a standstill or a time limit in which only some ranks had come to the meeting."""
    if case.cause is not None or case.ending not in (Ending.DEADLOCKED, Ending.TIMED_OUT):
        return None
    joining = [s for s in case.stands if s.operation == _JOINING]
    rest = [s for s in case.stands if s.operation != _JOINING]
    if not joining:
        return None
    others = told(rest) if rest else "all of them are there, but with different addresses, sizes or ranks"
    return case.parting(
        title="The process group never came together",
        what=f"{ranks(s.rank for s in joining)} waited in `init_process_group`{named(joining[0].where)}; {others}",
        why="A process group exists only once every rank has joined it, at the same address and under its own number",
        hint=(
            "Call `dist.init_process_group(backend)` at the start of every rank, under no test of the rank, and let "
            "torchrun's environment give the address, `rank` and `world_size`."
        ),
        where=joining[0].where,
        ranks=tuple(s.rank for s in rest) or tuple(s.rank for s in joining),
    )
