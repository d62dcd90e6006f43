"""Ranks that hold parts of one model are given different batches.

## What it finds
Ranks of one tensor, pipeline or context parallel group that train, or validate, on different samples in the same step:
a sampler that divides among all ranks although some of them share one model, or one that divides along the wrong
dimension of the mesh.

## Why it matters
Under tensor parallelism each rank works out its part of every layer, and the parts are added up; in a pipeline the
first stage sees the images and the last one the labels. What is put together must come of the same samples. With
different ones the sums mix different images, labels belong to other inputs, and the loss still falls a little, so that
nobody notices.

## Example
```python
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import parallelize_module
from torch.utils.data import DataLoader, DistributedSampler

mesh = init_device_mesh("cuda", (2, 2), mesh_dim_names=("dp", "tp"))
model = parallelize_module(build_model(), mesh["tp"], plan)
sampler = DistributedSampler(train_set)  # divides among all four ranks
train_loader = DataLoader(train_set, batch_size=64, sampler=sampler)
for images, labels in train_loader:
    optimizer.zero_grad()
    loss_of(model(images), labels).backward()
    optimizer.step()
```

## Use instead
```python
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import parallelize_module
from torch.utils.data import DataLoader, DistributedSampler

mesh = init_device_mesh("cuda", (2, 2), mesh_dim_names=("dp", "tp"))
model = parallelize_module(build_model(), mesh["tp"], plan)
sampler = DistributedSampler(train_set, num_replicas=mesh["dp"].size(), rank=mesh["dp"].get_local_rank())
train_loader = DataLoader(train_set, batch_size=64, sampler=sampler)
for images, labels in train_loader:
    optimizer.zero_grad()
    loss_of(model(images), labels).backward()
    optimizer.step()
```

## How it is seen
In the run: which ranks hold parts of one model is told by `parallelize_module`, the stages of
`torch.distributed.pipelining`, `context_parallel` and distributed tensors; their samples are compared step by step, by
index, or by what the model was given. In the source: a sampler, or a share cut by the global rank, that divides among
all ranks in a script that gives a dimension of a mesh of its own to one of these. A model that a script divides by its
own means is not judged. Reference: https://pytorch.org/tutorials/intermediate/TP_tutorial.html.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from grader.checks.phrases import at, count, place, ranks
from grader.checks.rule import Hit, Observation, flagged, not_observable, not_reached, verified
from grader.checks.source.script import Script
from grader.model.finding import Severity
from grader.model.precondition import Precondition

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence
    from grader.checks.run.data.shared_batches import BatchComparison

SEVERITY = Severity.ERROR
NEEDS = Precondition.RANKS
_HINT = (
    "Divide along the data-parallel dimension alone: "
    '`DistributedSampler(train_set, num_replicas=mesh["dp"].size(), rank=mesh["dp"].get_local_rank())`; with no such '
    "dimension give all ranks the same batches: `num_replicas=1, rank=0`, or a generator seeded alike."
)


def check_source(script: Script) -> Iterable[Hit]:
    """Flag training loaders that divide among all ranks although some of them share one model."""
    if script.training.framework:
        return
    given = script.meshes.in_parts
    if given is None:
        return
    for sampler in script.meshes.over_all_ranks():
        yield Hit(
            message=f"{script.at(sampler)} divides the samples among all ranks, {script.quote(sampler)}, but "
            f"{script.at(given)} lets several ranks hold parts of one model, {script.quote(given)}: these have to draw "
            "the same batches.",
            hint=_HINT,
            where=(script.location(sampler),),
        )


def check_run(evidence: Evidence) -> Observation:
    """Flag models whose ranks met different samples in the same step."""
    from grader.checks.run.data.shared_batches import compare_batches

    layout = evidence.ledger.layout
    if layout.by_hand and not layout.divided:
        return not_observable(f"{layout.by_hand}: which ranks have to draw the same can't be told.")
    if not layout.divided:
        return not_reached("No model was divided among ranks.")
    found = compare_batches(evidence.trace)
    if found.ranks:
        return flagged(_hit(evidence, found))
    if not found.num_same:
        return not_observable("What two ranks of one model drew could not be compared.")
    sizes = {len(model): model for model in layout.models}
    return verified(
        f"Ranks that hold parts of one model{layout.dimension(sizes[max(sizes)])} had the same samples in "
        f"{count(found.num_same, 'compared batch', 'compared batches')}."
    )


def _hit(evidence: Evidence, found: BatchComparison) -> Hit:
    layout = evidence.ledger.layout
    validated = "validation" in found.when
    what = "validated" if validated else "trained"
    how = (
        "drew the same indices, and their models were given different inputs"
        if found.given
        else f"{what} on different batches"
    )
    hint = (
        "Let random transforms draw alike on ranks that share one model: seed their generators by the data-parallel "
        "rank, not by the global one."
        if found.given
        else _HINT
    )
    return Hit(
        message=f"{ranks(found.ranks)} hold parts of one model{layout.dimension(found.ranks)} and {how} {found.when}. "
        f"{at(found.site, 'The loader')} deals them out. What these ranks compute is put together as if it came of the "
        "same samples.",
        hint=hint,
        where=place(found.site),
        ranks=found.ranks,
        details={"models": [list(model) for model in layout.models if len(model) > 1][:8]},
    )
