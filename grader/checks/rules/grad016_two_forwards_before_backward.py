"""The wrapper runs twice before one backward pass, in a model with BatchNorm.

## What it finds
Two training forward passes of the same DDP model whose results meet in one loss, where the model holds BatchNorm layers
and DDP sends their statistics around.

## Why it matters
Before each forward pass DDP overwrites the buffers with rank 0's. The first pass's graph may still need
them: many versions of torch stop with "modified by an inplace operation", others don't. One pass over both inputs,
put together, is safe and faster.

## Example
```python
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

net = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Linear(16, 4))
model = DistributedDataParallel(net)
for first, second in train_loader:
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(first), model(second))
    loss.backward()
    optimizer.step()
```

## Use instead
```python
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

net = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Linear(16, 4))
model = DistributedDataParallel(net)
for first, second in train_loader:
    optimizer.zero_grad()
    a, b = model(torch.cat([first, second])).chunk(2)
    nn.functional.mse_loss(a, b).backward()
    optimizer.step()
```

## How it is seen
In the source alone: two calls of one wrapper in the value that `backward` starts from, and a BatchNorm layer in the
wrapped class. Whether it fails depends on the version of torch, so this is advice. `broadcast_buffers=False` and
SyncBatchNorm are not flagged.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.rule import Hit
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import ancestors, start, walk
from grader.model.finding import Severity

SEVERITY = Severity.HINT


def check_source(script: Script) -> Iterable[Hit]:
    """Flag two passes of one wrapper that meet in one backward pass."""
    if script.training.framework:
        return
    for backward in script.training.backwards:
        passes: dict[ast.Call, set[ast.Call]] = {}
        for call in script.updates.forwards(backward):
            if isinstance(call.func, ast.Name | ast.Attribute) and not script.training.gradients_off(call):
                for wrap in (o for o in script.values.origins(call.func) if o in script.training.wraps):
                    if isinstance(wrap, ast.Call):
                        passes.setdefault(wrap, set()).add(call)
        for wrap, calls in passes.items():
            first, *others = sorted(calls, key=start)
            together = [c for c in others if not _apart(script, first, c)]
            if together and _broadcasts_batchnorm(script, wrap):
                yield Hit(
                    message=f"{script.at(together[0])} runs the wrapped model again before {script.at(backward)} has "
                    f"gone back through the pass of {script.at(first)}. DDP overwrites BatchNorm's statistics before "
                    "each pass, and many versions of torch then refuse the backward pass.",
                    hint="Run both inputs through one pass, `model(torch.cat([a, b])).chunk(2)`, or wrap with "
                    "`broadcast_buffers=False`.",
                    where=(script.location(together[0]),),
                )


def _apart(script: Script, a: ast.Call, b: ast.Call) -> bool:
    """In different branches, functions or loops: perhaps never in one round."""
    tree = script.names.tree(a)
    if script.names.tree(b) is not tree or tree.function(a) is not tree.function(b):
        return True
    if script.updates.loops_around(a) != script.updates.loops_around(b):
        return True
    return any(
        isinstance(n, ast.If | ast.IfExp | ast.Try)
        and (tree.inside(a, n) != tree.inside(b, n) or tree.inside(a, n))
        for n in (*tree.ifs, *_conditionals(tree.parent, a), *_conditionals(tree.parent, b))
    )


def _conditionals(parent: dict[ast.AST, ast.AST], node: ast.AST) -> Iterable[ast.AST]:
    return (above for above in ancestors(parent, node, (ast.stmt,)) if isinstance(above, ast.IfExp))


def _broadcasts_batchnorm(script: Script, wrap: ast.Call) -> bool:
    given = script.argument(wrap, "broadcast_buffers")
    if given is not None and script.values.constant(given) is not True:
        return False
    if script.calls("torch.nn.SyncBatchNorm.convert_sync_batchnorm"):
        return False
    module = script.argument(wrap, "module")
    for origin in script.values.origins(module) if module is not None else ():
        owner = script.graph.built_class(origin)
        for node in walk(owner if owner is not None else origin):
            name = script.names.qualified(node) if isinstance(node, ast.Name | ast.Attribute) else None
            if name is not None and name.startswith("torch.nn.BatchNorm"):
                return True
    return False
