"""A loader has no batch to give.

## What it finds
Loops over a loader that ends before its first batch: the share is smaller than a batch and `drop_last=True` drops it,
or nothing fell to the rank at all.

## Why it matters
Nothing fails at the loop itself: it runs no times. What fails comes later and elsewhere, as a division by zero, a name
without a value, or a network that has learnt nothing; and a metric over no samples is no metric.

## Example
```python
from torch.utils.data import DataLoader, DistributedSampler

sampler = DistributedSampler(train_set)  # 1,437 samples for 4 ranks: 360 each
train_loader = DataLoader(train_set, batch_size=512, sampler=sampler, drop_last=True)
for images, labels in train_loader:  # never
    train_step(images, labels)
```

## Use instead
```python
from torch.utils.data import DataLoader, DistributedSampler

sampler = DistributedSampler(train_set)
train_loader = DataLoader(train_set, batch_size=128, sampler=sampler)
for images, labels in train_loader:
    train_step(images, labels)
```

## How it is seen
In the run, by passes over a loader that end without a batch. Sizes of sets and the number of ranks are not in the text,
so the source is not asked. A loader that is empty on some ranks, or that only validates, is a hint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from grader.checks.phrases import at, place, ranks
from grader.checks.rule import Hit, Observation, flagged, not_reached, verified
from grader.model.finding import Severity

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence
    from grader.checks.run.data.empty_loaders import EmptyLoader

SEVERITY = Severity.WARNING


def check_run(evidence: Evidence) -> Observation:
    """Flag loaders that ran dry before their first batch."""
    from grader.checks.run.data.empty_loaders import empty_loaders
    from grader.model.run import Ending

    failed = evidence.record.ending is not Ending.COMPLETED
    empty = empty_loaders(evidence.trace, built=failed and not any(r.batches for r in evidence.trace.ranks))
    if empty:
        return flagged(*(_hit(one) for one in empty))
    if not any(rank.batches for rank in evidence.trace.ranks):
        return not_reached("No loader gave a batch, and none was asked for one.")
    return verified("Every loader that was asked for batches gave some.")


def _hit(empty: EmptyLoader) -> Hit:
    loader = empty.loader
    everywhere = len(empty.ranks) == empty.num_ranks
    return Hit(
        message=(
            f"{ranks(empty.ranks)} got no batch at all from the loader at {at(loader.site, 'an unknown line')}: "
            f"{empty.cause}. The loop over it runs no times, and what counts on its results fails later."
        ),
        hint=empty.cure,
        where=place(loader.site),
        ranks=empty.ranks,
        details={
            "samples": empty.num_samples,
            "batch_size": loader.batch_size,
            "drop_last": loader.drop_last,
        },
        severity=None if everywhere and loader.split != "validation" else Severity.HINT,
    )
