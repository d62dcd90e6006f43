"""The ranks never join a process group.

## What it finds
A script that wraps its model, shards its data or calls collectives, or that reads its rank from the launcher's
environment, without ever starting a process group.

## Why it matters
`torchrun` only starts processes; they meet in `init_process_group`. Without it `DistributedDataParallel`, a
`DistributedSampler` and every collective stop with an error, and a script that uses none of them is N independent
trainings that happen to share a folder.

## Example
```python
import os
import torch
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
sampler = DistributedSampler(train_set)
loader = DataLoader(train_set, batch_size=64, sampler=sampler)
model = DistributedDataParallel(build_model().cuda(), device_ids=[local_rank])
```

## Use instead
```python
import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
dist.init_process_group("nccl")
sampler = DistributedSampler(train_set)
loader = DataLoader(train_set, batch_size=64, sampler=sampler)
model = DistributedDataParallel(build_model().cuda(), device_ids=[local_rank])
...
dist.destroy_process_group()
```

## How it is seen
In the source: no reachable call of `init_process_group`, in any file that was handed in. In the run: no rank reports a
group, or fewer ranks than were started. Reference: `torch.distributed`, "Initialization"
(https://pytorch.org/docs/stable/distributed.html#initialization).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.collectives import ALL
from grader.checks.definition import start
from grader.checks.rule import Hit
from grader.checks.source import Script
from grader.checks.training import SAMPLER
from grader.model.finding import Severity

SEVERITY = Severity.ERROR
_OTHER_STARTS = ("init_process_group", "init_device_mesh", "init_distributed", "init_rpc")


def check_source(script: Script) -> Iterable[Hit]:
    """Flag the first line that needs a group where nothing reachable starts one."""
    if not script.mentions_distributed or script.training.framework or script.may_hide_setup:
        return
    starts = [n for name in _OTHER_STARTS for n in script.mentioned(name)]
    if any(_may_run(script, node) for node in starts):
        return
    needs: list[ast.AST] = [*script.training.wraps, *(c for n in ALL for c in script.calls(n))]
    needs += [s for s in script.calls(SAMPLER) if not _is_told(script, s)]
    if not needs and script.training.trains:
        needs = [n for n in _environment_reads(script) if script.guards.on_every_rank(n)]
    if not needs:
        return
    first = min(needs, key=lambda n: (script.location(n).path != "train.py", script.location(n).path, start(n)))
    uncalled = f" `init_process_group` stands in {script.at(starts[0])}, but nothing calls that function." if starts else ""
    yield Hit(
        message=f"{script.at(first)} has {script.quote(first)}, but no rank ever joins a process group.{uncalled} "
        "`torchrun` only starts the processes; until they meet in `init_process_group` each of them trains alone or stops.",
        hint='Call `dist.init_process_group("nccl")` (`"gloo"` on CPUs) before the first sampler, wrapper or collective; '
        "torchrun has set everything it needs.",
        where=(script.location(first),),
    )


def _may_run(script: Script, node: ast.AST) -> bool:
    """A function that nobody calls or hands on starts nothing."""
    function = script.names.tree(node).function(node)
    return function is None or bool(script.graph.sites(function) or script.graph.references(function)) or (
        function in script.graph.class_of
    )


def _is_told(script: Script, sampler: ast.Call) -> bool:
    return all(script.argument(sampler, name) is not None for name in ("num_replicas", "rank"))


def _environment_reads(script: Script) -> list[ast.AST]:
    found: list[ast.AST] = []
    for tree in script.trees:
        for node in tree.attribute_loads.get("environ", ()):
            above = tree.parent[node]
            if script.ranks.environment(above) in ("RANK", "WORLD_SIZE"):
                found.append(above)
    return found
