"""A process group is formed, and then no rank says anything in it.

## What it finds
Runs in which several ranks join a group, compute, and end without one exchange: no wrapper that averages gradients, no
collective that carries a tensor or an object. A barrier alone carries nothing. Runs, too, in which one rank computes
gradients and another never does: what it brings to an exchange is not its share of the work.

## Why it matters
Ranks that never talk are so many single processes, each with results of its own. The group makes the script look
distributed, and the launch command too; all that more GPUs do is to compute the same thing several times.

## Example
```python
import torch.distributed as dist

dist.init_process_group("gloo")
gradient = gradient_of(my_share)  # stays where it is
dist.destroy_process_group()
```

## Use instead
```python
import torch.distributed as dist

dist.init_process_group("gloo")
gradient = gradient_of(my_share)
dist.all_reduce(gradient)
dist.destroy_process_group()
```

## How it is seen
In the run alone: what each rank told of its groups, collectives and wrappers, in runs that came to their end. Where
gradients are found to differ, that finding says it better.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from grader.checks.phrases import at, count, first_known, place, ranks
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.model.finding import Severity
from grader.model.precondition import Precondition

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence

SEVERITY = Severity.WARNING
NEEDS = Precondition.GROUP
EXPLAINED_BY = ("DIST001", "DIST006", "GRAD001", "GRAD002", "GRAD003", "GRAD007", "DATA001")
_CARRY_NOTHING = {"barrier", "monitored_barrier", "new_group"}


def check_run(evidence: Evidence) -> Observation:
    """Flag a completed run of several ranks with a group in which nothing was exchanged."""
    from grader.checks.run.call_counts import num_calls

    if not evidence.finished:
        return not_observable("Only a whole run shows whether the ranks talk.")
    formed = [g for r in evidence.trace.ranks for g in r.groups if g.op == "init" and g.world_size > 1]
    if not formed:
        return not_observable("No process group of several ranks was seen.")
    exchanges = num_calls(evidence.trace, leave_out=_CARRY_NOTHING)
    idle = _idle(evidence)
    if idle:
        return flagged(_idle_hit(evidence, idle))
    if wraps := [w for r in evidence.trace.ranks for w in r.wraps]:
        return verified(f"{count(len(wraps), 'wrapper')} exchanged what the ranks computed.")
    if exchanges:
        return verified(f"Ranks exchanged {count(exchanges, 'tensor or object', 'tensors or objects')}.")
    site = first_known([g.site for g in formed])
    return flagged(
        Hit(
            message=(
                f"{at(site, 'The script')} forms a group of {formed[0].world_size} ranks, and none of them ever sends "
                "or receives anything in it: each computes by itself."
            ),
            hint="Let each rank compute on its own share, and put the results together with a collective.",
            where=place(site),
            ranks=tuple(r.rank for r in evidence.trace.ranks),
        )
    )


def _idle(evidence: Evidence) -> list[int]:
    """Ranks that never computed a gradient where others did; nothing where optimizers step, whose rules see more."""
    from grader.checks.run.endings.end_counts import gradients_computed

    if evidence.trace.trainers or not all(r.ended for r in evidence.trace.ranks):
        return []
    passes = {r.rank: gradients_computed(r) for r in evidence.trace.ranks}
    return [rank for rank, number in passes.items() if not number] if any(passes.values()) else []


def _idle_hit(evidence: Evidence, idle: list[int]) -> Hit:
    from grader.checks.run.endings.end_counts import gradients_computed

    busy = [r.rank for r in evidence.trace.ranks if r.rank not in idle]
    return Hit(
        message=(
            f"{ranks(idle)} never computed a gradient. {ranks(busy)} did all of the work; what the others brought to "
            "the exchanges is no share of it."
        ),
        hint="Let each rank compute the gradient of its own share, and put the results together with a collective.",
        where=(),
        ranks=tuple(idle),
        details={"passes_by_rank": {str(r.rank): gradients_computed(r) for r in evidence.trace.ranks}},
    )
