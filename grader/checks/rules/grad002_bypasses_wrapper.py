"""Training goes around the DDP wrapper.

## What it finds
Training forward passes of the inner module, `model.module(x)` or the name the model had before it was wrapped, while
the wrapper stands by.

## Why it matters
DDP prepares each backward pass in the wrapper's own `forward`. A forward pass of the inner module leaves the wrapper
out, so gradients are not averaged and every rank trains a model of its own, silently.

## Example
```python
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(build_model())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for images, labels in train_loader:
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model.module(images), labels)
    loss.backward()
    optimizer.step()
dist.destroy_process_group()
```

## Use instead
```python
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(build_model())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for images, labels in train_loader:
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
dist.destroy_process_group()
```

## How it is seen
In the run, by forward passes of the inner module in training mode that did not come through the wrapper, together with
gradients that differ among ranks. In the source, by a call of `.module(…)`, or of the model's old name, whose result is
trained on.
"""

from __future__ import annotations

from grader.checks.quote import at, count, place, places, ranks
from grader.checks.rule import Hit, Look, flagged, unseen, verified
from grader.checks.seen import Seen
from grader.checks.steps import compare_gradients, sharded, trainers
from grader.model.finding import Severity

SEVERITY = Severity.ERROR
WRAPPERS = ("ddp", "fabric", "accelerate")


def check_trace(seen: Seen) -> Look:
    """Flag inner forward passes in training, where they left gradients different."""
    if seen.trace.world_size < 2:
        return unseen("Only one rank ran, so it makes no difference which module is called.")
    wraps = [w for r in seen.trace.ranks for w in r.wraps if w.kind in WRAPPERS]
    if not wraps or sharded(seen.trace):
        return unseen("No model was wrapped in DDP.")
    bypasses = [(r.rank, e) for r in seen.trace.ranks for e in r.events("bypass")]
    found = compare_gradients(seen.trace)
    if not bypasses:
        if len(trainers(seen.trace)) < 2:
            return unseen("No optimizer step was seen on two ranks.")
        return verified("Every training forward pass went through the wrapper.")
    if found.num_steps and found.difference is None:
        return verified(
            "The inner module was called in training, yet gradients were equal "
            f"at all {count(found.num_steps, 'step')} compared."
        )
    if not found.num_steps:
        return unseen(
            "The inner module was called in training, but no step was seen to compare gradients at."
        )
    first = bypasses[0][1]
    wrap = wraps[0]
    concerned = tuple(sorted({rank for rank, _ in bypasses}))
    step = found.difference.step if found.difference else found.first
    return flagged(
        Hit(
            message=(
                f"{ranks(concerned)} trained through the inner module: {at(first.site, 'the training loop')} calls "
                f"it, not the wrapper made at {at(wrap.site, 'the wrap')}. Gradients differ among ranks from step {step} on "
                f"({found.num_different:,} of {count(found.num_steps, 'compared step')}), "
                "so each rank trains a model of its own."
            ),
            hint="Call the wrapped model, `model(x)`, in training; `model.module` is for saving and attributes.",
            where=tuple(dict.fromkeys((*places(e.site for _, e in bypasses), *place(wrap.site)))),
            ranks=concerned,
            details={
                "bypasses": len(bypasses),
                "first_different_step": step,
                "steps_compared": found.num_steps,
                "steps_different": found.num_different,
            },
        )
    )
