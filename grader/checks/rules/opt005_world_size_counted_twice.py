"""The learning rate is multiplied by the number of processes twice.

## What it finds
A learning rate with the world size in it two times: multiplied again where it was multiplied before, or multiplied by
the world size and by the devices of a machine, which the world size counts already.

## Why it matters
The rate may grow by k for k times the batch. By k² it is far too large: training diverges, or stays worse than with one
process, and the more devices there are the worse it gets.

## Example
```python
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("nccl")
model = DistributedDataParallel(build_model())
lr = 0.1 * dist.get_world_size() * torch.cuda.device_count()
optimizer = torch.optim.SGD(model.parameters(), lr=lr)
dist.destroy_process_group()
```

## Use instead
```python
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("nccl")
model = DistributedDataParallel(build_model())
lr = 0.1 * dist.get_world_size()  # processes of all machines
optimizer = torch.optim.SGD(model.parameters(), lr=lr)
dist.destroy_process_group()
```

## How it is seen
In the source alone, by the factors of the rate that an optimizer is built with, followed through assignments. A world
size that is itself put together from machines and devices counts once.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.rule import Hit
from grader.checks.source.script import Script
from grader.model.finding import Severity

SEVERITY = Severity.WARNING
_ALL = {"torch.distributed.get_world_size"}
_LOCAL = {"torch.cuda.device_count"}


def check_source(script: Script) -> Iterable[Hit]:
    """Flag optimizers whose learning rate counts the processes more than once."""
    if not script.joins_group:
        return
    for name, call in script.calls_under("torch.optim."):
        if name.startswith("torch.optim.lr_scheduler."):
            rate = script.argument(call, "max_lr")
        else:
            rate = script.given(call, "lr")
        if rate is None:
            continue
        counts = [f for f in _factors(script, rate, 0) if f]
        if counts.count("all") < 2 and not ("all" in counts and "local" in counts):
            continue
        how = (
            "by the world size twice"
            if counts.count("all") > 1
            else "by the world size and by the devices of a "
        )
        "machine"
        yield Hit(
            message=f"{script.at(rate)} gives the optimizer a learning rate that was multiplied {how}, "
            f"{script.quote(rate)}. The world size counts every process of every machine already, so the rate grows "
            "with its square.",
            hint="Multiply once: `lr = base_lr * dist.get_world_size()`.",
            where=(script.location(rate),),
        )


def _factors(script: Script, node: ast.expr, depth: int) -> list[str]:
    """What a product is made of: `all` for the number of processes, `local` for devices of a machine, "" else."""
    if depth > 8:
        return [""]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return _factors(script, node.left, depth + 1) + _factors(script, node.right, depth + 1)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div | ast.FloorDiv):
        below = _factors(script, node.right, depth + 1)
        return _without(_factors(script, node.left, depth + 1), below)
    counted = _counts(script, node)
    if counted:
        return [counted]
    if isinstance(node, ast.Name | ast.Attribute):
        name = node.id if isinstance(node, ast.Name) else ""
        found = script.scopes.reaching(name, node) if name else ()
        values = [(d.kind, d.value) for d in found if d.value is not None and not d.path]
        if len(found) == len(values) == 1 and values[0][0] == "assign" and isinstance(values[0][1], ast.expr):
            return _factors(script, values[0][1], depth + 1)
        if len(found) == len(values) > 1 and values[0][0] == "augment":
            return _augmented(script, found, depth)
    return [""]


def _augmented(script: Script, found: tuple[object, ...], depth: int) -> list[str]:
    """`lr = 0.1 * world`, `lr *= world`: the nearest definition first."""
    factors: list[str] = []
    for definition in found:
        node, value = getattr(definition, "node", None), getattr(definition, "value", None)
        if isinstance(node, ast.AugAssign) and not isinstance(node.op, ast.Mult):
            return [""]
        factors += _factors(script, value, depth + 1) if isinstance(value, ast.expr) else []
    return factors


def _counts(script: Script, node: ast.expr) -> str:
    """Whether a value is for sure a number of processes of the whole run, or of devices of one machine."""
    kinds = set()
    for origin in script.values.origins(node):
        if isinstance(origin, ast.Call) and script.names.qualified(origin.func) == "int" and origin.args:
            origin = origin.args[0]  # noqa: PLW2901  # `int(os.environ["WORLD_SIZE"])`
        variable = script.ranks.environment(origin)
        name = script.names.qualified(origin.func) if isinstance(origin, ast.Call) else None
        if variable == "WORLD_SIZE" or name in _ALL:
            kinds.add("all")
        elif variable == "LOCAL_WORLD_SIZE" or name in _LOCAL:
            kinds.add("local")
        elif not (isinstance(origin, ast.Constant) and origin.value == 1):
            kinds.add("")
    return kinds.pop() if len(kinds) == 1 else ""


def _without(factors: list[str], divided: list[str]) -> list[str]:
    left = list(factors)
    for one in divided:
        if one and one in left:
            left.remove(one)
    return left
