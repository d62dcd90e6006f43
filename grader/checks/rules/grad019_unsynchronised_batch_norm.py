"""BatchNorm works rank by rank: on very small batches, or with statistics that never meet.

## What it finds
A model with BatchNorm layers and without SyncBatchNorm that trains on GPUs with a handful of samples per rank and
forward pass; or one that is wrapped with `broadcast_buffers=False`, whose running statistics nothing brings together
before all ranks validate their parts.

## Why it matters
BatchNorm's mean and variance come from the rank's own batch. Over four samples they are mostly noise, and only rank
0's running statistics are kept for evaluation. With many samples per rank this is a choice; with few, accuracy suffers.
With `broadcast_buffers=False` each rank collects running statistics of its own: parts of a validation set are then
scored by different networks, and the metric is that of none, nor of the one that is saved.

## Example
```python
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Subset

dist.init_process_group("gloo")
part = Subset(val_set, range(dist.get_rank(), len(val_set), dist.get_world_size()))
net = nn.Sequential(nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.Flatten(), nn.Linear(5408, 10))
model = DistributedDataParallel(net, broadcast_buffers=False)
train(model)
right = torch.zeros(1)
net.eval()
with torch.no_grad():
    for images, labels in DataLoader(part, batch_size=256):
        right += (net(images).argmax(1) == labels).sum()
dist.all_reduce(right)
```

## Use instead
```python
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Subset

dist.init_process_group("gloo")
part = Subset(val_set, range(dist.get_rank(), len(val_set), dist.get_world_size()))
net = nn.Sequential(nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.Flatten(), nn.Linear(5408, 10))
model = DistributedDataParallel(net, broadcast_buffers=False)
train(model)
right = torch.zeros(1)
for buffer in net.buffers():  # the statistics that will be saved
    dist.broadcast(buffer, src=0)
net.eval()
with torch.no_grad():
    for images, labels in DataLoader(part, batch_size=256):
        right += (net(images).argmax(1) == labels).sum()
dist.all_reduce(right)
```

On GPUs `nn.SyncBatchNorm.convert_sync_batchnorm(net)` before the wrap cures both: all ranks normalise together.

## How it is seen
In the run: the layers that DDP found at the wrap, and the samples per forward pass. SyncBatchNorm exists for GPUs only,
so batches on CPUs are not judged. Statistics that stay apart are seen in the text and confirmed in the run: the
argument at the wrap, validation in parts, and nothing that sends or averages buffers or a state dict.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from grader.checks.phrases import at, count, place, ranks, told_once
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.checks.source.causes import lines
from grader.checks.source.models.apart_statistics import apart, brings_together, send_before
from grader.checks.source.script import Script
from grader.model.finding import Severity

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence

SEVERITY = Severity.HINT
_FEW = 4
"""Samples per rank and forward pass up to which the statistics are mostly noise."""
_APART = "and nothing brings BatchNorm's running statistics together: each rank has those of its own batches."
_SO = "with other ones: the metric of all parts is that of no one network, nor of the one that is saved."


def check_source(script: Script) -> Iterable[Hit]:
    """Flag running statistics that each rank keeps to itself and validates with."""
    for wrap, forward in apart(script):
        yield Hit(
            message=f"{script.at(wrap)} wraps with `broadcast_buffers=False`, {_APART} {script.at(forward)} scores "
            f"each part {_SO}",
            hint=send_before(script),
            where=(script.location(wrap), script.location(forward)),
        )


def _kept_apart(evidence: Evidence) -> Hit | None:
    """Ranks that put the metrics of their parts together, each with running statistics of its own."""
    from grader.checks.run.metrics.validation_passes import combining, divided_passes

    script, ledger = evidence.script, evidence.ledger
    active = evidence.trace.trainers
    wraps = [w for r in active for w in r.wraps if w.kind == "ddp" and w.num_batchnorm]
    if len(active) < 2 or not wraps or brings_together(script):
        return None
    if any(w.broadcast_buffers is not False or w.num_sync_batchnorm for w in wraps):
        return None
    for stream in ledger.validation:
        parts = divided_passes(ledger, stream)
        if parts and combining(evidence.trace, stream, script):
            scoring = [forward for _, forward in apart(script)][:1]
            return Hit(
                message=f"{at(wraps[0].site, 'DDP')} wraps {count(wraps[0].num_batchnorm, 'BatchNorm layer')} with "
                f"`broadcast_buffers=False`, {_APART} {ranks(parts[0].epoch.ranks)} scored each part of the validation "
                f"set {_SO}",
                hint=send_before(script),
                where=told_once((*place(wraps[0].site), *lines(script, scoring))),
                ranks=parts[0].epoch.ranks,
                details={"num_batchnorm": wraps[0].num_batchnorm},
            )
    return None


def check_run(evidence: Evidence) -> Observation:
    """Flag statistics that stay apart, and plain BatchNorm over tiny batches on GPUs."""
    from statistics import median

    if (kept := _kept_apart(evidence)) is not None:
        return flagged(kept)
    active = evidence.trace.trainers
    wraps = [(r, w) for r in active for w in r.wraps if w.kind == "ddp" and w.num_batchnorm]
    if len(active) < 2 or not wraps:
        return not_observable("No model with BatchNorm was trained in DDP by several ranks.")
    if any(w.num_sync_batchnorm for _, w in wraps):
        return verified("BatchNorm shares its statistics among the ranks (SyncBatchNorm).")
    if not all(d.startswith("cuda") for _, w in wraps for d in w.param_devices):
        return not_observable("SyncBatchNorm exists for GPUs only.")
    sizes = [s.samples / max(1, s.backwards or 1) for r, _ in wraps for s in r.steps if s.samples]
    if not sizes:
        return not_observable("How many samples each forward pass had was not seen.")
    usual = median(sizes)
    if usual > _FEW:
        return verified(f"BatchNorm sees {usual:g} samples per rank at a time, which is enough for a choice.")
    rank, wrap = wraps[0]
    return flagged(
        Hit(
            message=f"{ranks(r.rank for r, _ in wraps)} normalise over {usual:g} samples at a time: "
            f"{count(wrap.num_batchnorm, 'BatchNorm layer')} in the `{wrap.module}` that {at(wrap.site, 'DDP')} wraps "
            "work rank by rank, and over so few samples mean and variance are mostly noise.",
            hint="Convert before the wrap: `net = nn.SyncBatchNorm.convert_sync_batchnorm(net)`; or use GroupNorm.",
            where=place(wrap.site),
            ranks=tuple(r.rank for r, _ in wraps),
            details={"samples_per_pass": usual, "num_batchnorm": wrap.num_batchnorm, "rank": rank.rank},
        )
    )
