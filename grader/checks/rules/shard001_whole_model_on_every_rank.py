"""Each rank holds the whole model, where the task asks for shards.

## What it finds
Where a task asks for a sharded model: ranks whose optimizer steps over whole parameters, or over shards of a few of
them only, or that keep copies of the whole model beside its shards.

## Why it matters
DistributedDataParallel keeps N copies of everything: for each parameter 4 bytes of weight, 4 of gradient and, with
Adam, 8 of optimizer state, on every GPU. A model that does not fit one GPU fits none. Sharded over N ranks each holds
an N-th of all of it, and weights come together layer by layer, only while they are needed.

## Example
```python
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(build_model())
optimizer = torch.optim.Adam(model.parameters())
dist.destroy_process_group()
```

## Use instead
```python
import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
model = build_model()
for block in model.blocks:
    fully_shard(block)
fully_shard(model)
optimizer = torch.optim.Adam(model.parameters())  # after sharding: these are the shards
dist.destroy_process_group()
```

## How it is seen
In the run alone, and only where the task asks for it: by the bytes of parameters and of optimizer state that each rank
holds after its second step, beside what the whole would be, and by the plain tensors that it has then: one whole copy
may be a state dict that was loaded, two are not. The text then tells which sizes of a mesh left one rank for each
whole.
Reference: "Getting Started with Fully Sharded Data Parallel", https://pytorch.org/tutorials/intermediate/FSDP_tutorial.html.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from grader.checks.phrases import at, continued, count, place, ranks, told_once
from grader.checks.rule import Hit, Observation, flagged, not_observable, not_reached, verified
from grader.checks.source.causes import lines, sharding_meshes
from grader.checks.source.models.sharding_fixes import turned_mesh, without_mesh
from grader.model.finding import Severity
from grader.model.precondition import Precondition

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence
    from grader.checks.run.models.model_memory import ModelMemory
    from grader.model.trace import Wrap

SEVERITY = Severity.ERROR
NEEDS = Precondition.RANKS
EXPLAINED_BY = ("DIST001", "DIST006", "GRAD003", "GRAD011")
_MARGIN = 1.3
"""Shards are padded to equal length, and small tensors divide badly: so much more than the N-th part is still fair."""
_WHOLE = 0.99
"""What is more than this share of a model is all of it."""

_COPIES = 2
"""Whole copies beside the shards from which on they are work of each step; one may be a state dict that was loaded."""

_SHARD = (
    "Give every block, and the model last, to `fully_shard` before you build the optimizer, and leave "
    "DistributedDataParallel away."
)


def check_run(evidence: Evidence) -> Observation:
    """Compare what each rank holds with its share of the whole."""
    from grader.checks.run.models.model_memory import beside_the_shards, model_memory
    from grader.checks.run.models.replica_comparison import in_parts_by_hand
    from grader.checks.run.optimisation.learning_rates import optimizer_places

    if not evidence.expected.sharded:
        return not_reached("The task does not ask for a sharded model, so there is none to look at.")
    held = model_memory(evidence.trace)
    if len(held) < evidence.world_size:
        return not_observable(
            "Not every rank took the two optimizer steps after which its memory is looked at."
        )
    plain = not any(one.num_sharded for one in held.values())
    if plain and (evidence.ledger.layout.divided or in_parts_by_hand(evidence.trace)):
        return not_observable(
            "The ranks hold parts of one model as tensors of their own, so the whole is not known."
        )
    beside = beside_the_shards(evidence.trace)
    if beside:
        return flagged(_steps_over_others(evidence, held, beside))
    fair = _MARGIN / evidence.world_size
    greedy = {rank: one for rank, one in held.items() if one.share > fair}
    first = next(iter((greedy or held).values()))
    if not greedy and all(one.copies >= _COPIES for one in held.values()):
        return flagged(_copies_beside(evidence, held))
    if not greedy:
        return verified(
            f"{_in_bytes(first)} on each of {evidence.world_size} ranks: {first.share:.0%} of the whole."
        )
    some = (
        f" {first.num_sharded} of its {first.num_tensors} tensors are sharded." if first.num_sharded else ""
    )
    hint, fix, turned = _SHARD, None, None
    if first.num_sharded and first.num_sharded == first.num_tensors:
        mesh, fix = without_mesh(evidence.script)
        if mesh is not None:
            some += f" {evidence.script.quote(mesh)} divides them among fewer ranks than there are."
            hint = "Leave `mesh=` out of every `fully_shard`: it then shards over all ranks."
        turned, written, edits = turned_mesh(evidence.script) if first.share > _WHOLE else (None, "", None)
        if turned is not None:
            some += f" {evidence.script.at(turned)} gives its sizes as {evidence.script.quote(turned)}: copies lie "
            some += "along the first, shards along the second, which was 1."
            hint = f"Turn the sizes round, `{written}`: first the copies, then the shards of each."
            fix = edits
    return flagged(
        Hit(
            message=f"{ranks(greedy)} {'holds' if len(greedy) == 1 else 'hold'} {first.share:.0%} of the model: "
            f"{_in_bytes(first)}; sharded over {evidence.world_size} ranks it would be "
            f"{_mib(first.whole / evidence.world_size)}.{some}",
            hint=hint,
            fix=fix,
            where=(
                *lines(evidence.script, [turned] if turned is not None else []),
                *lines(evidence.script, sharding_meshes(evidence.script)),
                *optimizer_places(evidence.script),
            ),
            ranks=tuple(greedy),
            details={"share_by_rank": {str(r): round(h.share, 4) for r, h in held.items()}},
        )
    )


def _steps_over_others(evidence: Evidence, held: dict[int, ModelMemory], beside: dict[int, Wrap]) -> Hit:
    """A model that was divided, and an optimizer that was given none of its shards."""
    from grader.checks.run.optimisation.learning_rates import optimizer_places

    rank, last = next(iter(beside.items()))
    sharded = at(last.site, "The call that shards the model")
    return Hit(
        message=f"{ranks(beside)} {'steps' if len(beside) == 1 else 'step'} over whole tensors, although "
        f"{continued(sharded)} divides the model: of the {count(held[rank].num_tensors, 'tensor')} that the optimizer "
        "holds none is a shard.",
        hint=f"Build the optimizer below {continued(sharded)}, from the sharded model's parameters.",
        where=told_once((*optimizer_places(evidence.script), *place(last.site))),
        ranks=tuple(beside),
    )


def _copies_beside(evidence: Evidence, held: dict[int, ModelMemory]) -> Hit:
    """Shards, and beside them what they are there to divide."""
    first = next(iter(held.values()))
    gathered = evidence.script.called("full_tensor")
    put = f" {evidence.script.at(gathered[0])} puts shards together." if gathered else ""
    without = ", and a step on them needs no `full_tensor()`" if gathered else ""
    return Hit(
        message=f"{ranks(held)} {'holds' if len(held) == 1 else 'hold'} whole tensors beside the shards of the model: "
        f"after the second step {first.copies} copies of nearly all {count(first.num_sharded, 'sharded tensor')}, "
        f"{_mib(first.copied)}, where the rank's part of weights and optimizer state is "
        f"{_mib(first.param_bytes + first.state_bytes)}.{put} Nothing is divided so: a model that does not fit one "
        "device fits none.",
        hint="Keep copies and averages of the shards alone: what `torch.zeros_like(p)` and `p.detach().clone()` make "
        f"of a sharded parameter is sharded as it is{without}.",
        where=lines(evidence.script, gathered),
        ranks=tuple(held),
        details={"copies_by_rank": {str(r): one.copies for r, one in held.items()}},
    )


def _in_bytes(one: ModelMemory) -> str:
    return f"{_mib(one.param_bytes)} of weights and {_mib(one.state_bytes)} of optimizer state"


def _mib(num_bytes: float) -> str:
    return f"{num_bytes / (1 << 20):.3g} MiB"
