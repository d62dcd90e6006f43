"""Ranks with unequal batches count alike in the averaged gradient.

## What it finds
Steps at which ranks train on clearly different numbers of samples, while their gradients are averaged as if the numbers
were equal.

## Why it matters
Each rank's loss is a mean over its own samples, and DDP takes the mean of these means. A sample on a rank with few of
them then weighs more than one on a rank with many: with 64 and 32 samples, twice as much. One process with the
whole batch would have computed something else.

## Example
```python
from torch.utils.data import DataLoader

loader = DataLoader(train_set, batch_size=64 if rank == 0 else 32, sampler=sampler)
for images, labels in loader:
    optimizer.zero_grad()
    loss_of(model(images), labels).backward()
    optimizer.step()
```

## Use instead
```python
from torch.utils.data import DataLoader

loader = DataLoader(train_set, batch_size=64, sampler=sampler)
for images, labels in loader:
    optimizer.zero_grad()
    loss_of(model(images), labels).backward()
    optimizer.step()
```

## How it is seen
In the run alone: samples per step on each rank, compared step by step, where gradients were equal on all ranks. A last
batch that is shorter is no fault, and a loss that the text weighs by what all ranks have is not judged. Unequal
numbers of tokens in batches of equal size can't be seen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from grader.checks.phrases import at, count, first_known, place, ranks
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.model.finding import Severity
from grader.model.precondition import Precondition

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence

SEVERITY = Severity.HINT
NEEDS = Precondition.GROUP
_RATIO = 1.25
"""Above this, the larger batch is clearly larger."""


def check_run(evidence: Evidence) -> Observation:
    """Flag runs in which most steps average over clearly unequal numbers of samples."""
    from grader.checks.run.models.replica_comparison import compare_gradients, sharded

    active = evidence.trace.trainers
    if len(active) < 2 or sharded(evidence.trace):
        return not_observable("No steps of two ranks with whole gradients were seen.")
    averaged = compare_gradients(evidence.trace)
    if not averaged.num_steps or averaged.difference is not None:
        return not_observable("Gradients were not seen to be averaged.")
    per_step = list(zip(*(r.steps for r in active), strict=False))
    known = [s for s in per_step if all(x.samples for x in s) and len({x.optimizer for x in s}) == 1]
    if not known:
        return not_observable("How many samples each step used was not seen.")
    unequal = [s for s in known if max(x.samples for x in s) > _RATIO * min(x.samples for x in s)]
    if len(unequal) <= len(known) // 2:
        return verified(
            f"Ranks used about equally many samples at {len(known) - len(unequal)} of {len(known)} steps."
        )
    if evidence.script.averaging.scaled:
        return not_observable(
            "Ranks used unequal numbers of samples, and the script weighs them in a way of its own."
        )
    first = unequal[0]
    most = max(range(len(active)), key=lambda i: first[i].samples)
    least = min(range(len(active)), key=lambda i: first[i].samples)
    site = first_known([s.site for r in active for s in r.steps])
    return flagged(
        Hit(
            message=(
                f"At {len(unequal):,} of {count(len(known), 'step')} ranks trained on unequal numbers of samples "
                f"({ranks([active[most].rank]).lower()} on {first[most].samples}, "
                f"{ranks([active[least].rank]).lower()} on {first[least].samples} at step {first[0].n}), and "
                f"{at(site, 'each step')} takes the plain mean of their gradients: samples of the smaller batch "
                "weigh more."
            ),
            hint="Give all ranks batches of one size, or multiply each rank's loss by its number of samples times the "
            "number of ranks, divided by the number of samples of all ranks.",
            where=place(site),
            ranks=(active[most].rank, active[least].rank),
            details={"steps": len(known), "unequal": len(unequal), "samples": [x.samples for x in first]},
        )
    )
