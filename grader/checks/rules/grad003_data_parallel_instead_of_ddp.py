"""`DataParallel` does the training.

## What it finds
A model trained through `torch.nn.DataParallel` in a script that was started as several ranks.

## Why it matters
`DataParallel` drives all devices from one process by threads: it copies the model at each step, is slower than DDP,
and knows nothing of other ranks. Started by torchrun, each rank drives every device, and no gradient is averaged
among ranks.

## Example
```python
import torch

model = torch.nn.DataParallel(build_model())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for images, labels in train_loader:
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(images), labels).backward()
    optimizer.step()
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
    torch.nn.functional.cross_entropy(model(images), labels).backward()
    optimizer.step()
dist.destroy_process_group()
```

## How it is seen
In the run, by a `DataParallel` module on a rank that took optimizer steps. In the source, by its construction outside a
branch that only runs without other ranks.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING

from grader.checks.needed_lines import START_GROUP
from grader.checks.phrases import at, places, ranks
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import ancestors
from grader.checks.source.training_loops import OTHER_WRAPPERS
from grader.model.finding import Severity

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence

SEVERITY = Severity.ERROR


def check_source(script: Script) -> Iterable[Hit]:
    """Flag `DataParallel` around a model that is trained, unless it is the fallback of a script that knows DDP."""
    training = script.training
    if not training.trains or training.framework:
        return
    proper = bool(training.wraps or script.calls(*OTHER_WRAPPERS))
    for call in script.calls("torch.nn.parallel.DataParallel"):
        if script.guards.alone(call) or (
            proper and not _inside_ddp(script, call) and _is_fallback(script, call)
        ):
            continue
        twice = " inside `DistributedDataParallel`" if proper and _inside_ddp(script, call) else ""
        yield Hit(
            message=f"{script.at(call)} wraps the model in {script.quote(call)}{twice}: threads of one process "
            "that drive all devices and know nothing of other ranks. Started by torchrun, every rank drives "
            "every device and no gradient is averaged among ranks.",
            hint=f"Use one process per device: `{START_GROUP}`, then `model = DistributedDataParallel(model)`.",
            where=(script.location(call),),
        )


def _inside_ddp(script: Script, call: ast.Call) -> bool:
    modules = [script.argument(w, "module") for w in script.training.wraps]
    return any(call in script.values.origins(m) for m in modules if m is not None)


def _is_fallback(script: Script, call: ast.Call) -> bool:
    """Whether some condition chooses between this line and another way."""
    tree = script.names.tree(call)
    above = ancestors(tree.parent, call, tree.function(call))
    return any(isinstance(a, ast.If | ast.IfExp) for a in above)


def check_run(evidence: Evidence) -> Observation:
    """Flag `DataParallel` on ranks that trained."""
    active = evidence.trace.trainers
    if not active:
        return not_observable("No optimizer step was seen.")
    found = [(r.rank, w) for r in active for w in r.wraps if w.kind == "data_parallel"]
    if not found:
        return verified("No training rank wrapped a model in `DataParallel`.")
    wrap = found[0][1]
    concerned = tuple(sorted({rank for rank, _ in found}))
    inside = any(w.kind == "ddp" for r in active for w in r.wraps)
    extra = (
        "inside DDP, so each rank drives every device again"
        if inside
        else "which knows nothing of the other ranks"
    )
    return flagged(
        Hit(
            message=(
                f"{ranks(concerned)} trained a `{wrap.module or 'model'}` through `DataParallel`, {extra}. "
                f"{at(wrap.site)} wraps it: one process copies the model to its devices at each step, "
                "and nothing is averaged among ranks."
            ),
            hint="Replace it by `DistributedDataParallel(model)` after `init_process_group`, one rank per device.",
            where=places(w.site for _, w in found),
            ranks=concerned,
            details={"module": wrap.module, "inside_ddp": inside},
        )
    )
