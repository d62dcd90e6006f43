"""A loader is given a sampler and `shuffle=True`.

## What it finds
`DataLoader(…, sampler=…, shuffle=True)`: both decide on the order, so PyTorch accepts only one of them.

## Why it matters
The loader raises a `ValueError` the moment it is built, on every rank, and nothing is trained.

## Example
```python
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler

dist.init_process_group("gloo")
sampler = DistributedSampler(train_set)
loader = DataLoader(train_set, batch_size=64, sampler=sampler, shuffle=True)
dist.destroy_process_group()
```

## Use instead
```python
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler

dist.init_process_group("gloo")
sampler = DistributedSampler(train_set, shuffle=True)
loader = DataLoader(train_set, batch_size=64, sampler=sampler)
dist.destroy_process_group()
```

## How it is seen
In the run, by the exception. In the source, by both arguments in one call, where the one is sure to be a sampler and
the other sure to be true.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING

from grader.checks.phrases import places, ranks
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.checks.source.script import Script
from grader.checks.source.syntax.edits import Edits
from grader.checks.source.syntax.nodes import UNKNOWN
from grader.model.finding import Location, Severity
from grader.model.fix import Fix

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence

SEVERITY = Severity.ERROR
_SAID = "mutually exclusive with shuffle"
_ONE = "Leave out `shuffle` where a sampler is given: `DistributedSampler(train_set, shuffle=True)` shuffles by itself."


def check_source(script: Script) -> Iterable[Hit]:
    """Flag loaders with a sampler for sure and `shuffle=True` for sure."""
    for loader in script.training.loaders() if script.mentions_distributed else ():
        shuffle = script.argument(loader, "shuffle")
        if shuffle is None or script.values.constant(shuffle) is not True:
            continue
        given = [a for n in ("sampler", "batch_sampler") if (a := script.argument(loader, n)) is not None]
        if not any(_is_sampler(script, a) for a in given):
            continue
        yield Hit(
            message=f"{script.at(loader)} gives the loader a sampler and `shuffle=True`: {script.quote(loader)}. Both "
            "decide on the order, so PyTorch refuses with a `ValueError` and no rank trains.",
            hint=_ONE,
            where=(script.location(loader),),
            fix=_fix(script, loader),
        )


def _fix(script: Script, loader: ast.Call) -> Fix | None:
    edits = Edits(script)
    edits.take_away(loader, "shuffle", "False")
    return edits.fix("Leaves the order to the sampler alone.")


def _is_sampler(script: Script, node: ast.expr) -> bool:
    if node is UNKNOWN:
        return False
    origins = script.values.origins(node)
    return bool(origins) and all(isinstance(o, ast.Call) for o in origins)


def check_run(evidence: Evidence) -> Observation:
    """Flag runs that ended with the loader's own complaint."""
    from grader.checks.run.endings.exception_places import exception_places

    hit: list[int] = []
    where: list[Location] = []
    for rank in evidence.trace.ranks:
        for event in rank.events("exception"):
            if event.fields.get("type") == "ValueError" and _SAID in str(event.fields.get("message", "")):
                hit.append(rank.rank)
                where += places(exception_places(event)[:1])
    if hit:
        return flagged(
            Hit(
                message=f"{ranks(hit)} ended with a `ValueError`: the loader was given a sampler and `shuffle=True`. "
                "Both decide on the order, so PyTorch accepts only one of them, and nothing was trained.",
                hint=_ONE,
                where=tuple(dict.fromkeys(where)),
                ranks=tuple(hit),
            )
        )
    if any(rank.loaders for rank in evidence.trace.ranks):
        return verified("Every loader could be built.")
    return not_observable("No loader was built.")
