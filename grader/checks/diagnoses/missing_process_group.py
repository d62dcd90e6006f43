"""There was no process group yet, or none any more.

## What happened
A line asked for the process group (`DistributedDataParallel`, `DistributedSampler`, `dist.get_rank`, a
collective) before one existed, or after it was taken down.

## Why
Wrapping a model, samplers without arguments and every collective ask the process group who else is there, and
torchrun only starts the processes: it does not join them.

## Mend it
Call `dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")` once, at the start of every
rank, before the first line that needs it, and `dist.destroy_process_group()` behind the last one.
"""

from __future__ import annotations

from dataclasses import replace

from grader.checks.phrases import at, place, places
from grader.checks.run.endings.failed_run import FailedRun
from grader.checks.run.endings.late_stops import NO_GROUP, stopped_without_group
from grader.checks.source.collectives.ended_groups import advice_for
from grader.checks.source.collectives.late_groups import moved_up
from grader.model.diagnosis import Diagnosis

ORDER = 20


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak where the first exception says so."""
    if run.saying(NO_GROUP) is None:
        return None
    over = [one for one in stopped_without_group(run.evidence) if one.rank in {f.rank for f in run.alike}]
    if over:
        ended = over[0].ended
        told = run.crash(
            title="The process group was over already",
            what="needed the process group",
            why=f"It had been there, but {at(ended, 'a line before')} took it down before that: from then on every "
            "collective, every wrapper and every question for the rank fails",
            hint=advice_for(run.evidence.script, over[0].reached, ended),
        )
        return replace(told, where=tuple(dict.fromkeys((*told.where, *place(ended)))))
    late, _ = moved_up(run.evidence.script, places(f for one in run.alike for f in one.frames))
    return run.crash(
        title="There was no process group yet",
        what="used torch.distributed before `dist.init_process_group` was called",
        why=(
            "Wrapping a model, samplers without arguments and every collective ask the process "
            "group who else is there, and torchrun only starts the processes: it does not join "
            "them"
        ),
        hint=late
        or (
            'Call `dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")` '
            "once, at the start of every rank, before the first line that needs it."
        ),
    )
