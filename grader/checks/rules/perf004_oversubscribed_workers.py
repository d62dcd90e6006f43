"""Each rank starts as many loader workers as the machine has processors.

## What it finds
`num_workers=os.cpu_count()` in a loader that every rank builds.

## Why it matters
k ranks on a machine start k times as many workers as there are processors. They take the time, and the memory, of each
other: loading gets slower, and machines with many processors run out of memory or file handles.

## Example
```python
import os

import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler

dist.init_process_group("nccl")
sampler = DistributedSampler(train_set)
loader = DataLoader(train_set, batch_size=64, sampler=sampler, num_workers=os.cpu_count())
dist.destroy_process_group()
```

## Use instead
```python
import os

import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler

dist.init_process_group("nccl")
sampler = DistributedSampler(train_set)
workers = os.cpu_count() // int(os.environ["LOCAL_WORLD_SIZE"])
loader = DataLoader(train_set, batch_size=64, sampler=sampler, num_workers=workers)
dist.destroy_process_group()
```

## How it is seen
In the source alone, by a number of workers that is the machine's number of processors, neither divided nor capped.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.rule import Hit
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import UNKNOWN
from grader.model.finding import Severity

SEVERITY = Severity.HINT
_COUNTS = {
    "os.cpu_count", "multiprocessing.cpu_count", "torch.multiprocessing.cpu_count", "psutil.cpu_count",
    "os.process_cpu_count",
}  # fmt: skip


def check_source(script: Script) -> Iterable[Hit]:
    """Flag loaders with a worker for each processor of the machine on every rank."""
    if not script.joins_group:
        return
    for loader in script.training.loaders():
        workers = script.argument(loader, "num_workers")
        if (
            workers is None
            or workers is UNKNOWN
            or script.guards.partial(loader)
            or script.guards.alone(loader)
        ):
            continue
        origins = script.values.origins(workers)
        if not origins or not all(_counts(script, o) for o in origins):
            continue
        yield Hit(
            message=f"{script.at(loader)} starts a worker for each processor of the machine, {script.quote(loader)}, "
            "on every rank: k ranks start k times too many, and they take each other's time and memory.",
            hint="Divide by the ranks of the machine: "
            '`num_workers=os.cpu_count() // int(os.environ["LOCAL_WORLD_SIZE"])`.',
            where=(script.location(loader),),
        )


def _counts(script: Script, node: ast.AST) -> bool:
    if isinstance(node, ast.Call) and script.names.qualified(node.func) == "len" and node.args:
        inner = node.args[0]  # `len(os.sched_getaffinity(0))`
        return isinstance(inner, ast.Call) and script.names.qualified(inner.func) == "os.sched_getaffinity"
    return isinstance(node, ast.Call) and script.names.qualified(node.func) in _COUNTS
