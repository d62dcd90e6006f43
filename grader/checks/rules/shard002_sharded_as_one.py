"""The sharded model comes together at once: it is one unit, or its units stay gathered.

## What it finds
Where a task asks for a sharded model: a model of several layers whose only call of `fully_shard` is the one for the
model as a whole; and one in blocks of which most are whole at once, since they keep what they gathered
(`reshard_after_forward=False`).

## Why it matters
A unit is what is gathered before it is used and let go afterwards. With one unit for everything, the first layer's
forward pass brings all weights to every rank, and they stay until the last layer is done: at its peak each rank holds
the whole model again. With one unit per block at most two blocks are whole at a time, and the next one's gathering
hides behind this one's work. Blocks that keep their weights until the backward pass save one gathering, and pay with
the memory that sharding was to save. The last block alone may: it is needed again at once.

## Example
```python
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
model = build_model()
fully_shard(model)
dist.destroy_process_group()
```

## Use instead
```python
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
model = build_model()
for block in model.blocks:
    fully_shard(block)
fully_shard(model)  # what is left: embedding, head
dist.destroy_process_group()
```

## How it is seen
In the run alone, and only where the task asks for shards: by the modules that were given to `fully_shard`, and by those
that are whole as the first training passes and their backward passes begin. The text then names the test that picked
none of them, or the argument that keeps them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from grader.checks.phrases import at, place, ranks, told_once
from grader.checks.rule import Hit, Observation, flagged, not_reached, verified
from grader.checks.source.causes import lines
from grader.checks.source.models.kept_units import BY_DEFAULT, ROOT, what_keeps
from grader.checks.source.models.unmet_policies import unmet_policy
from grader.model.finding import Severity

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence
    from grader.checks.run.models.gathered_units import Gathered

SEVERITY = Severity.HINT
EXPLAINED_BY = ("SHARD001",)


def check_run(evidence: Evidence) -> Observation:
    """Count the units of the first rank that sharded anything, and those that are whole at once."""
    from grader.checks.run.endings.unfinished_shards import stopped_while_sharding
    from grader.checks.run.models.gathered_units import gathered

    if not evidence.expected.sharded:
        return not_reached("The task does not ask for a sharded model, so there is none to look at.")
    units = next((u for r in evidence.trace.ranks if (u := [w for w in r.wraps if w.kind == "fsdp2"])), [])
    if stopped_while_sharding(evidence) is not None:
        return not_reached(
            "The run ended while the model was being sharded, so its units were not all there yet."
        )
    if not units:
        older = any(w.kind == "fsdp" for r in evidence.trace.ranks for w in r.wraps)
        return not_reached(
            "The model is in a `FullyShardedDataParallel`, the older way, whose units are not looked at: the task asks "
            "for `fully_shard`, which is given each block and the model last."
            if older
            else "Nothing was given to `fully_shard`: first divide the model with it."
        )
    if len(units) > 1:
        told = gathered(evidence.trace)
        if kept := {rank: one for rank, one in told.items() if one.most}:
            return flagged(_stay_whole(evidence, kept))
        and_let_go = " and let go of again" if told else ""
        return verified(
            f"The model is sharded in {len(units)} units, which are gathered one after the other{and_let_go}."
        )
    only, script = units[0], evidence.script
    whole = only.module.removeprefix("FSDP")  # as `fully_shard` renames its class
    policy = unmet_policy(script, only.site)
    nodes = (policy.picks, *policy.made, policy.call) if policy is not None else ()
    return flagged(
        Hit(
            message=f"{at(only.site)} shards `{whole}` as one unit: every forward pass gathers all of its "
            f"{only.num_params:,} parameters on every rank before the first layer runs."
            + (f" {policy.says(script)}" if policy is not None else ""),
            hint=policy.hint(script, whole)
            if policy is not None
            else "Call `fully_shard(block)` for each block first, then `fully_shard(model)` for the rest.",
            where=told_once((*lines(script, nodes), *place(only.site))),
            details={"num_tensors": only.num_tensors},
        )
    )


def _stay_whole(evidence: Evidence, kept: dict[int, Gathered]) -> Hit:
    """Units that are whole at the same time."""
    rank, one = next(iter(kept.items()))
    wraps = next(r.wraps for r in evidence.trace.ranks if r.rank == rank)
    site = next((w.site for w in wraps if w.id in one.whole), None)
    cause = what_keeps(evidence.script, site, early=not one.backward)
    when = "as the backward pass begins" if one.backward else "before the forward pass begins"
    says, hint = (
        (f" {cause.says}", cause.hint) if cause is not None else ("", BY_DEFAULT if one.rooted else ROOT)
    )
    return Hit(
        message=f"{one.elements:,} of the {one.of:,} parameters in {one.num_units} units are whole on each of "
        f"{ranks(kept).lower()} {when}: {len(one.whole)} units at once.{says}",
        hint=hint,
        where=told_once((*lines(evidence.script, cause.nodes if cause is not None else ()), *place(site))),
        ranks=tuple(kept),
        details={"units": one.num_units, "whole": len(one.whole)},
    )
