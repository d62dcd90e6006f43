"""BatchNorm works on very small batches, rank by rank.

## What it finds
A model with BatchNorm layers that trains on GPUs with a handful of samples per rank and forward pass, and without
SyncBatchNorm.

## Why it matters
BatchNorm's mean and variance come from the rank's own batch. Over four samples they are mostly noise, and only rank
0's running statistics are kept for evaluation. With many samples per rank this is a choice; with few, accuracy suffers.

## Example
```python
from torch.nn.parallel import DistributedDataParallel

net = build_model_with_batchnorm().to(device)
model = DistributedDataParallel(net, device_ids=[local_rank])
```

## Use instead
```python
from torch import nn
from torch.nn.parallel import DistributedDataParallel

net = nn.SyncBatchNorm.convert_sync_batchnorm(build_model_with_batchnorm()).to(device)
model = DistributedDataParallel(net, device_ids=[local_rank])
```

## How it is seen
In the run alone: the layers that DDP found at the wrap, and the samples per forward pass. SyncBatchNorm exists for GPUs
only, so runs on CPUs are not judged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from grader.checks.phrases import at, count, place, ranks
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.model.finding import Severity

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence

SEVERITY = Severity.HINT
_FEW = 4
"""Samples per rank and forward pass up to which the statistics are mostly noise."""


def check_run(evidence: Evidence) -> Observation:
    """Flag plain BatchNorm over tiny batches on GPUs."""
    from statistics import median

    from grader.checks.run.replica_comparison import trainers

    active = trainers(evidence.trace)
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
