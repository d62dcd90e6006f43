"""The global rank is used as the number of a GPU.

## What it finds
`torch.cuda.set_device`, `device_ids`, `.to(…)` and `.cuda(…)` that are given `dist.get_rank()` or `RANK`.

## Why it matters
GPUs are numbered from 0 on each machine, global ranks over all of them: on the second machine rank 8 asks for GPU 8 of
eight and stops with "invalid device ordinal". On one machine the two numbers are the same, so it shows only later.

## Example
```python
import torch
import torch.distributed as dist

dist.init_process_group("nccl")
torch.cuda.set_device(dist.get_rank())
```

## Use instead
```python
import os
import torch
import torch.distributed as dist

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
```

## How it is seen
In the source alone: device numbers are followed to the global rank; `rank % torch.cuda.device_count()` is right.
Reference: "Definitions", https://pytorch.org/docs/stable/elastic/run.html.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.rule import Hit
from grader.checks.source.devices.cuda_indices import device_numbers
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import start
from grader.model.finding import Severity

SEVERITY = Severity.HINT


def check_source(script: Script) -> Iterable[Hit]:
    """Hint at device numbers that are global ranks."""
    if not script.joins_group or script.training.framework:
        return
    wrong: list[ast.AST] = []
    for call, number in device_numbers(script):
        if script.ranks.kind(number) == "global" and not script.guards.alone(call):
            wrong.append(call)
    wrong.sort(key=lambda n: (script.location(n).path, start(n)))
    if wrong:
        first = wrong[0]
        yield Hit(
            message=f"{script.at(first)} takes the global rank for the number of a GPU: {script.quote(first)}. On a "
            "second machine ranks go on counting, but its GPUs start at 0 again, so the device doesn't exist.",
            hint='Use the local rank: `local_rank = int(os.environ["LOCAL_RANK"])`; without torchrun, '
            "`rank % torch.cuda.device_count()`.",
            where=tuple(dict.fromkeys(script.location(n) for n in wrong)),
        )
