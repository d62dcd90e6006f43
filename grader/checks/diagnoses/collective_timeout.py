"""A rank waited too long for the others.

## What happened
The time limit of the process group ran out in a collective: the other ranks came late or not at all.

## Why
A collective ends only when every rank has called it, and the process group's time limit ran out first because
another rank was busy elsewhere or never came. A limit that the script sets to seconds is the cause by itself.

## Mend it
Let no rank work alone for long between two collectives (evaluate, tokenise or save on all ranks, or before
the group starts), check that all ranks really make this call, and raise `timeout=` in `init_process_group`
where the wait is meant.
"""

from __future__ import annotations

import re
from dataclasses import replace

from grader.checks.run.endings.failed_run import FailedRun
from grader.checks.source.collectives.group_timeouts import group_timeouts
from grader.model.diagnosis import Diagnosis

ORDER = 25
_SHORT_S = 60
"""A shorter limit than this is a cause of its own: the first steps, a checkpoint or a validation take as long."""
_WORDS = re.compile(
    r"Timed out waiting \d+ ?ms"
    r"|Watchdog caught collective operation timeout"
    r"|ran for \d+ milliseconds before timing out"
    r"|[Cc]ollective.{0,60}tim(ed out|eout)"
    r"|monitoredBarrier.{0,80}(timed out|failed)"
)
# As NCCL's watchdog names what it waited for, before it ends the process.
_WORK = re.compile(
    r"WorkNCCL\(SeqNum=(?P<number>\d{1,15}), OpType=(?P<name>\w{1,40}), NumelIn=(?P<elements>\d{1,15}),"
    r" NumelOut=\d{1,15}, Timeout\(ms\)=(?P<ms>\d{1,12})\)"
)


def _collective(run: FailedRun) -> str:
    found = run.saying(_WORK) or run.logged(_WORK)
    if found is None:
        return "a collective"
    number, elements = int(found["number"]), int(found["elements"])
    size = f"{elements:,} element{'s' * (elements != 1)}"
    waited = f"after {int(found['ms']) / 1000:,.0f} s"
    return f"collective {number:,} of its group, {found['name'].lower()} of {size}, {waited}"


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak where the first exception says so."""
    if run.saying(_WORDS) is None:
        return None
    script = run.evidence.script
    short = next((t for t in group_timeouts(script) if t.length_s < _SHORT_S), None)
    why = (
        "A collective ends only when every rank has called it, and the process group's time limit ran out first "
        "because another rank was busy elsewhere or never came"
    )
    hint = (
        "Let no rank work alone for long between two collectives (evaluate, tokenise or "
        "save on all ranks, or before the group starts), check that all ranks really make "
        "this call, and raise `timeout=` in `init_process_group` where the wait is meant."
    )
    if short is not None:
        limit, line = f"{short.length_s:.3g} s", script.at(short.node)
        why = (
            f"A collective ends only when every rank has called it, and {line} gives the others {limit} to come, "
            f"{script.quote(short.node)}: whoever is busy for longer than that breaks the run"
        )
        hint = (
            f"Raise the time limit at {line} above what one rank may need alone: left out, it is 10 minutes with NCCL "
            "and 30 with gloo. Or let no rank work alone between two collectives: do it on all ranks, or before the "
            "group starts."
        )
    told = run.crash(
        title="A rank waited too long for the others",
        what=f"gave up waiting for the other ranks in {_collective(run)}",
        why=why,
        hint=hint,
    )
    return replace(told, where=(script.location(short.node), *told.where)) if short is not None else told
