"""A method is named and not called, or mapped and never reached.

## What it finds
A statement that is nothing but the name of a method: `scheduler.step`, `loss.backward`, `model.eval`, `dist.barrier`
without parentheses. And an iterator that nothing goes through: `map(dist.broadcast, tensors)`, a generator expression
or a call of a function that yields, which stands as a statement or in a name that nothing reads.

## Why it matters
Python looks the method up, or makes the iterator, drops it and goes on without a word. The rate keeps its first value,
nothing is trained, validation runs in training mode, nobody waits, no weights are sent: whatever the line was for does
not happen.

## Example
```python
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(build_model())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10)
for images, labels in loader:
    train_step(model, optimizer, images, labels)
    scheduler.step
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
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10)
for images, labels in loader:
    train_step(model, optimizer, images, labels)
    scheduler.step()
dist.destroy_process_group()
```

## How it is seen
In the source alone: no run shows what a statement like this does, as it does nothing. A barrier that stands where only
some ranks come by is told to move, for with parentheses it would wait for ever. `zero_grad` is left to GRAD006,
starting and taking down the process group to DIST001 and DIST002, which say the same of theirs.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.rule import Hit
from grader.checks.source.calls.uncalled_methods import MEETINGS, meeting, parentheses, uncalled
from grader.checks.source.script import Script
from grader.checks.source.syntax.edits import Edits
from grader.checks.source.values.unread_iterators import advice, gone_through, unread
from grader.model.finding import Severity
from grader.model.fix import Fix

SEVERITY = Severity.WARNING
_EFFECTS = {
    "step": "nothing is stepped",
    "backward": "no gradient is computed",
    "eval": "the network stays in training mode",
    "train": "the network stays in the mode that it is in",
    **dict.fromkeys(MEETINGS, "no rank waits for another"),
}
"""What does not happen, by the method."""


def check_source(script: Script) -> Iterable[Hit]:
    """Flag statements that name such a method, and iterators that nothing goes through."""
    if not script.joins_group and not script.training.backwards:
        return
    for method, effect in _EFFECTS.items():
        for named in uncalled(script, method):
            yield Hit(
                message=f"{script.at(named)} only names {script.quote(named)}: {effect} there.",
                hint=meeting(script, named) if method in MEETINGS else parentheses(script, named),
                where=(script.location(named),),
                # Where some ranks come by, the others have to meet them: one line alone makes nothing right.
                fix=None if method in MEETINGS and script.guards.partial(named) else _fix(script, named),
            )
    for value in unread(script):
        yield Hit(
            message=f"{script.at(value)} makes an iterator, {script.quote(value)}, and nothing goes through it: none "
            "of its calls is made.",
            hint=advice(script, value),
            where=(script.location(value),),
            fix=gone_through(script, value),
        )


def _fix(script: Script, named: ast.Attribute) -> Fix | None:
    edits = Edits(script)
    edits.replace(named, f"{edits.text(named)}()")
    return edits.fix(f"Call `{edits.text(named)}`.")
