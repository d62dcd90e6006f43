"""The learning rate starts at its peak, without a warm-up.

## What it finds
Where a task asks for a warm-up: a run whose first optimizer steps were taken with the largest learning rate already.

## Why it matters
A rate that was raised for a large batch is too large for fresh weights: the first steps throw them far off, and the
loss may never come back. Over the first steps, or epochs, the rate has to climb from the small one to the large one.

## Example
```python
import torch

optimizer = torch.optim.SGD(model.parameters(), lr=0.8)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=num_steps)
```

## Use instead
```python
import torch

optimizer = torch.optim.SGD(model.parameters(), lr=0.8)
climb = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=1 / 8, total_iters=5 * steps_per_epoch)
decay = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=num_steps - 5 * steps_per_epoch)
scheduler = torch.optim.lr_scheduler.SequentialLR(optimizer, [climb, decay], milestones=[5 * steps_per_epoch])
```

## How it is seen
In the run alone, and only where the task asks for it: by the learning rate of each optimizer step. A warm-up that is
longer than its schedule was stepped never comes to the peak, and counts as none. A first step after which a schedule
set the rate back is no part of the climb.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from grader.checks.phrases import count
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.checks.source.causes import lines, warm_up_lengths
from grader.checks.source.optimisation.optimisation_fixes import warm_up_in_steps
from grader.checks.source.optimisation.set_back_rates import overwritten_rate, set_back_rate
from grader.checks.source.optimisation.warm_ups import counted_in_epochs
from grader.model.finding import Severity

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence

SEVERITY = Severity.HINT
EXPLAINED_BY = ("OPT006",)
_START = 0.7
"""A rate that starts above this share of its peak has not climbed."""
_MIN_STEPS = 4

_CLIMB = (
    "Let the rate climb over the first epochs: `torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=1 / k, "
    "total_iters=warmup_steps)`, followed by your schedule in a `SequentialLR`."
)


def check_run(evidence: Evidence) -> Observation:
    """Flag rates that start at their peak."""
    from grader.checks.run.optimisation.learning_rates import (
        after_first,
        curve,
        endless_warm_up,
        optimizer_places,
        set_back,
    )

    if not evidence.expected.warmup:
        return verified("The task does not ask for a warm-up.")
    found = next((c for r in evidence.trace.trainers if (c := curve(r)) is not None), None)
    if found is None or len(found.rates) < 2 * _MIN_STEPS:
        return not_observable("Too few optimizer steps were seen to tell how the learning rate began.")
    if set_back(found) and set_back_rate(evidence.script) is not None:
        # The rate of the first step is OPT001's matter: the schedule itself begins with the second.
        found = after_first(found)
    start = found.rates[0] / found.peak
    long, hint, fix = endless_warm_up(evidence.trace), _CLIMB, None
    if long is None and start <= _START and found.peak_at >= _MIN_STEPS:
        return verified(
            f"The learning rate climbed from {found.rates[0]:.3g} to {found.peak:.3g} over "
            f"{count(found.peak_at, 'step')}."
        )
    how = (
        f"was {found.rates[0]:.3g} in the first step, {start:.0%} of its peak {found.peak:.3g}"
        if start > _START
        else f"rose from {found.rates[0]:.3g} to no more than {found.peak:.3g}"
        if long is not None
        else f"jumped from {found.rates[0]:.3g} to its peak {found.peak:.3g} within {count(found.peak_at, 'step')}"
    )
    if long is not None:
        length, given = long
        how += f": the warm-up is {count(length, 'step')} long, and was given {given:,}"
        written, fix = warm_up_in_steps(evidence.script)
        hint = f"Make the warm-up a small part of the {given:,} steps that the schedule takes"
        hint += f": `{written}` is the number of batches of an epoch." if written else "."
    short = counted_in_epochs(evidence.script, (found.peak_at, found.peak_at + 1)) if long is None else None
    short = short or (overwritten_rate(evidence.script) if long is None and start > _START else None)
    if short is not None:
        how += f". {short.says}"
        hint = short.hint
    return flagged(
        Hit(
            message=f"The learning rate {how.removesuffix('.')}. The task asks for a warm-up: large steps on fresh "
            "weights can throw training off for good.",
            hint=hint,
            fix=fix,
            where=(
                *lines(evidence.script, short.nodes if short is not None else ()),
                *lines(evidence.script, warm_up_lengths(evidence.script)),
                *optimizer_places(evidence.script),
            ),
            details={"first_rates": list(found.rates[:8]), "peak": found.peak, "peak_at": found.peak_at},
        )
    )
