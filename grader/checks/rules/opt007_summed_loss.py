"""The loss is a sum over the batch.

## What it finds
A loss that is added up over the samples of a batch instead of averaged, and goes backward as it is.

## Why it matters
The gradient of a sum grows with the batch: with 64 samples a step is 64 times larger than with the mean, for which
learning rates are chosen. DDP averages over ranks, not over samples, so that every other number of ranks or batch size
also changes the step. Training then often diverges.

## Example
```python
import torch

for images, labels in train_loader:
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(images), labels, reduction="sum").backward()
    optimizer.step()
```

## Use instead
```python
import torch

for images, labels in train_loader:
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(images), labels).backward()
    optimizer.step()
```

## How it is seen
In the run, by the graph that autograd made of the loss: the function at its end says how it reduces, and
multiplications and divisions by numbers after it are taken into account.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from grader.checks.phrases import at, place
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.checks.source.causes import lines, sums_over_samples
from grader.model.finding import Severity

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence

SEVERITY = Severity.HINT
EXPLAINED_BY = ("OPT003",)
_MANY = 8
"""A sum that went backward as so many means or more was not meant to be one."""


def check_run(evidence: Evidence) -> Observation:
    """Flag sums over samples that nobody divides."""
    from statistics import median

    from grader.checks.run.gradients.loss_origins import loss_origin

    made = loss_origin(evidence.trace)
    sizes = [s.samples / max(1, s.backwards or 1) for r in evidence.trace.ranks for s in r.steps if s.samples]
    if made is None or not made.reduction or not sizes:
        return not_observable("What the losses were made of was not seen.")
    means = abs(made.factor) * median(sizes)
    if made.reduction != "sum" or means < _MANY:
        return verified(
            f"The loss went backward as a {made.reduction} over the batch, times {made.factor:g}."
        )
    return flagged(
        Hit(
            message=f"{at(made.site, 'The training loop')} goes backward from a sum over {round(median(sizes))} "
            f"samples, times {made.factor:g}: gradient and step are {means:.3g} times those of their mean.",
            hint='Take the mean over the batch (`reduction="mean"`, which is the default), or divide the sum by the '
            "number of its samples before `backward`.",
            where=(*lines(evidence.script, sums_over_samples(evidence.script)), *place(made.site)),
            details={"loss_function": made.function, "factor": made.factor},
        )
    )
