"""Training waits for its data most of the time.

## What it finds
A run whose ranks spend the larger part of their training steps waiting for the next batch.

## Why it matters
Devices that wait compute nothing. More ranks make it worse, since all of them draw on the same processors and disks:
the speed-up stops where the input does.

## Example
```python
from torch.utils.data import DataLoader, DistributedSampler

loader = DataLoader(train_set, batch_size=64, sampler=DistributedSampler(train_set))  # decodes one by one, in the loop
```

## Use instead
```python
from torch.utils.data import DataLoader, DistributedSampler

loader = DataLoader(
    train_set,
    batch_size=64,
    sampler=DistributedSampler(train_set),
    num_workers=4,  # processors of the machine divided by its ranks
    persistent_workers=True,
    pin_memory=True,
)
```

## How it is seen
In the run alone, by the time that each rank waited for batches against the time of its steps. It depends on the
machine, so it is said only where the waiting is long and by far the larger part, and it never costs points by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from grader.checks.phrases import listed, place
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.model.finding import Severity

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence
    from grader.model.trace import RankTrace

SEVERITY = Severity.HINT
CLOCKED = True
_SHARE = 0.6
_MIN_WAIT_S = 2.0
_MIN_STEPS = 20


def check_run(evidence: Evidence) -> Observation:
    """Flag runs in which every training rank waits for data most of the time."""
    ranks = [r for r in evidence.trace.trainers if len(r.steps) >= _MIN_STEPS]
    if not ranks or len(ranks) < len(evidence.trace.trainers):
        return not_observable("Too few steps were taken to tell how long they waited for data.")
    shares = {r.rank: _share(r) for r in ranks}
    told = listed(f"{share:.0%} on rank {rank}" for rank, (share, _) in shares.items())
    if any(share < _SHARE or wait_s < _MIN_WAIT_S for share, wait_s in shares.values()):
        return verified(f"Waiting for data took {told} of the training steps.")
    loaders = [s.shards(ranks[0].rank)[0].loader for s in evidence.ledger.training if s.shards(ranks[0].rank)]
    workers = {loader.num_workers for loader in loaders if loader is not None}
    how = " The loader has no workers, so samples are made in the loop itself." if workers == {0} else ""
    streams = evidence.ledger.training
    return flagged(
        Hit(
            message=f"Waiting for data took {told} of the training steps.{how} More ranks would wait for the same "
            "input.",
            hint="Let worker processes prepare batches (`num_workers` of about the machine's processors divided by its "
            "ranks, `persistent_workers=True`), and do costly work once, before training.",
            where=place(streams[0].site) if streams else (),
            ranks=tuple(shares),
            details={"wait_s_by_rank": {str(rank): round(wait, 3) for rank, (_, wait) in shares.items()}},
        )
    )


def _share(rank: RankTrace) -> tuple[float, float]:
    """Share of the steps' time spent waiting for batches, and seconds of it; the first step pays for starting up."""
    from statistics import median

    from grader.checks.run.optimisation.step_times import step_times

    timed = step_times(rank)
    waits = [one.step.data_s for one in timed]
    # A few long waits (an epoch's start, a neighbour on the machine) are no lack of input: the typical step must wait.
    typical = median(waits) / max(1e-9, median(one.seconds for one in timed))
    total = sum(one.seconds for one in timed)
    share = min(typical, sum(waits) / total if total > 0 else 0.0)
    return share, sum(step.data_s for step in rank.steps[1:])
