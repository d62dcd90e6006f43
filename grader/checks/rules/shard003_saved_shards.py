"""The checkpoint of a sharded model holds shards, not the model.

## What it finds
A run that trained a sharded model and left a file that nobody can load into the network: tensors of one rank's part, or
sharded tensors with all that they know of their ranks.

## Why it matters
The state dict of a model given to `fully_shard` holds DTensors, of which each rank has its own rows. Saved as they are
they need the same number of ranks to be read again; cut down to the local part, the rest of the network is lost.

## Example
```python
import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
model = build_model()
fully_shard(model)
if dist.get_rank() == 0:
    torch.save(model.state_dict(), "model.pt")
dist.destroy_process_group()
```

## Use instead
```python
import torch
import torch.distributed as dist
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
model = build_model()
fully_shard(model)
options = StateDictOptions(full_state_dict=True, cpu_offload=True)
weights = get_model_state_dict(model, options=options)  # on every rank: they bring their parts together
if dist.get_rank() == 0:
    torch.save(weights, "model.pt")
dist.destroy_process_group()
```

## How it is seen
In the run and by the scorer: the model was sharded, and the file that was left does not fit the
network, or holds more than tensors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from grader.checks.rule import Hit, Observation, flagged, not_observable, not_reached, verified
from grader.model.finding import EvidenceKind, Severity

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence

SEVERITY = Severity.ERROR


def check_run(evidence: Evidence) -> Observation:
    """Flag weights of a sharded run that were found unfit."""
    from grader.checks.run.models.model_memory import model_memory
    from grader.checks.run.models.parallel_layout import sharding_wraps
    from grader.model.evaluation import ArtifactProblem

    stepped_on = any(one.num_sharded for one in model_memory(evidence.trace).values())
    if not stepped_on and not any(sharding_wraps(r) for r in evidence.trace.ranks):
        return not_reached(
            "No sharded parameters were trained, so there was nothing to put together: first divide the model with "
            "`fully_shard`."
        )
    found = evidence.evaluation
    if found is None or (found.problem is not None and not found.artifact):
        return not_observable("The run left no weights to look at.")
    if found.problem not in (ArtifactProblem.MISMATCH, ArtifactProblem.REFUSED):
        return verified(f"{found.artifact} holds the network whole.", EvidenceKind.EVALUATION)
    return flagged(
        Hit(
            message=f"The model was trained in shards, and {found.artifact} is not the model put together again: "
            f"{found.detail}",
            hint="Let all ranks call `get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, "
            "cpu_offload=True))`, and one of them save what it returns.",
            where=evidence.written(found.artifact),
            evidence=EvidenceKind.EVALUATION,
        )
    )
