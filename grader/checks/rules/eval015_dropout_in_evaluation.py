"""Dropout in the network's forward pass goes on in evaluation mode.

## What it finds
`F.dropout(x, p)` and its kin in a forward pass without `training=self.training`, a `dropout_p` of
`scaled_dot_product_attention` that does not depend on the mode, and a `nn.Dropout(p)` that is built in the forward
pass.

## Why it matters
`model.eval()` reaches layers, not functions: `F.dropout` drops by default, `scaled_dot_product_attention` always does,
and a new layer begins in training mode. So the validation scores a network with holes: its figure is too low and
another one each time, the best checkpoint is chosen by chance, and whoever uses the saved network gets the same.

## Example
```python
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.head = nn.Linear(784, 128), nn.Linear(128, 10)

    def forward(self, x):
        x = F.dropout(F.relu(self.layer(x)), 0.5)
        return self.head(x)


torch.distributed.init_process_group("gloo")
model = DistributedDataParallel(Network())
for images, labels in train_loader:
    F.cross_entropy(model(images), labels).backward()
torch.distributed.destroy_process_group()
```

## Use instead
```python
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.head = nn.Linear(784, 128), nn.Linear(128, 10)

    def forward(self, x):
        x = F.dropout(F.relu(self.layer(x)), 0.5, training=self.training)
        return self.head(x)


torch.distributed.init_process_group("gloo")
model = DistributedDataParallel(Network())
for images, labels in train_loader:
    F.cross_entropy(model(images), labels).backward()
torch.distributed.destroy_process_group()
```

## How it is seen
In the source: such a call in `forward` of a network's class, or in a function that it leads to, whose `training` is not
given or is `True`, whose rate is not 0, and to which no test of the mode leads (`if self.training:`). An attention
whose rate nobody can tell is a hint, since it may be 0. Whoever wants samples of a network with dropout (Monte Carlo
dropout) may leave it as it is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.rule import Hit
from grader.checks.source.models.constant_dropout import ConstantDropout, constant_dropouts
from grader.checks.source.script import Script
from grader.checks.source.syntax.edits import Edits
from grader.checks.source.syntax.node_text import node_text
from grader.model.finding import Severity
from grader.model.fix import Fix

SEVERITY = Severity.WARNING


def check_source(script: Script) -> Iterable[Hit]:
    """Flag dropout that does not depend on the network's mode."""
    if not script.joins_group or not (script.training.trains or script.training.wraps):
        return
    for found in constant_dropouts(script):
        attention = found.argument == "dropout_p"
        yield Hit(
            message=f"{script.at(found.call)} has {script.quote(found.call)} in the network's forward pass, and "
            f"nothing tells it the network's mode: {_why(found)} So the validation scores a network that drops units, "
            "and so does whoever uses the saved one.",
            hint=_hint(script, found),
            where=(script.location(found.call),),
            severity=Severity.HINT if attention and not found.known else None,
            fix=_fix(script, found),
        )


def _why(found: ConstantDropout) -> str:
    if not found.argument:
        return "a layer that is built here is a new one each time, in training mode, which `model.eval()` can't reach."
    if found.argument == "dropout_p":
        return "the function drops by this rate whenever it is called."
    return "the function drops units after `model.eval()`, too."


def _hint(script: Script, found: ConstantDropout) -> str:
    if not found.argument:
        built = node_text(script, found.call)
        return f"Build the layer once, in `__init__` (`self.dropout = {built}`), and call it here."
    if found.argument == "dropout_p" and found.rate is not None:
        told = f"`dropout_p={node_text(script, found.rate)} if self.training else 0.0`"
    else:
        told = f"`{found.argument}=self.training`"
    return (
        f"Pass {told}." if found.method else f"Pass {told}, with `self.training` handed over by the network."
    )


def _fix(script: Script, found: ConstantDropout) -> Fix | None:
    if not found.method or not found.argument:
        return None
    edits = Edits(script)
    if found.argument == "dropout_p":
        if not isinstance(found.rate, ast.Constant | ast.Name | ast.Attribute):
            return None
        edits.give(found.call, "dropout_p", f"{edits.text(found.rate)} if self.training else 0.0")
    else:
        edits.give(found.call, found.argument, "self.training")
    return edits.fix("Drops units in training mode only.")
