"""The whole model is sharded as one unit, so all of it comes together at once.

## What it finds
Where a task asks for a sharded model: a model of several layers whose only call of `fully_shard` is the one for the
model as a whole.

## Why it matters
A unit is what is gathered before it is used and let go afterwards. With one unit for everything, the first layer's
forward pass brings all weights to every rank, and they stay until the last layer is done: at its peak each rank holds
the whole model again. With one unit per block at most two blocks are whole at a time, and the next one's gathering
hides behind this one's work.

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
In the run alone, and only where the task asks for shards: by the modules that were given to `fully_shard`. Where the
text calls it for others, too, the test that held for none of them is named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from grader.checks.phrases import at, place, told_once
from grader.checks.rule import Hit, Observation, flagged, not_reached, verified
from grader.checks.source.causes import lines
from grader.checks.source.models.unmet_policies import unmet_policy
from grader.model.finding import Severity

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence

SEVERITY = Severity.HINT
EXPLAINED_BY = ("SHARD001",)


def check_run(evidence: Evidence) -> Observation:
    """Count the units of the first rank that sharded anything."""
    from grader.checks.run.endings.unfinished_shards import stopped_while_sharding

    if not evidence.expected.sharded:
        return not_reached("The task does not ask for a sharded model, so there is none to look at.")
    units = next((u for r in evidence.trace.ranks if (u := [w for w in r.wraps if w.kind == "fsdp2"])), [])
    if stopped_while_sharding(evidence) is not None:
        return not_reached(
            "The run ended while the model was being sharded, so its units were not all there yet."
        )
    if not units:
        return not_reached("Nothing was given to `fully_shard`: first divide the model with it.")
    if len(units) > 1:
        return verified(
            f"The model is sharded in {len(units)} units, which are gathered one after the other."
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
