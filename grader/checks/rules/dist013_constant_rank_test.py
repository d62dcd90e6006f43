"""A test of the rank comes out the same on every rank.

## What it finds
Tests that look as if they told ranks apart, and don't: the text of an environment variable compared with a number
(`os.environ["RANK"] == 0`), a rank compared with `None` or with a text, a function that answers for the rank and is
named without being called.

## Why it matters
What stands under such a test runs on all ranks or on none: every rank writes the checkpoint, or nobody does. Nothing
fails at the test itself, so the fault shows somewhere else, as broken or missing files.

## Example
```python
import os
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
if os.environ["RANK"] == 0:
    torch.save(model.module.state_dict(), "model.pt")
dist.destroy_process_group()
```

## Use instead
```python
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
if dist.get_rank() == 0:
    torch.save(model.module.state_dict(), "model.pt")
dist.destroy_process_group()
```

## How it is seen
In the source alone, where both sides of the comparison are plain to see. Tests that ask whether there are several
processes at all (`os.environ.get("RANK") is not None`) are left alone.
"""

from __future__ import annotations

from collections.abc import Iterable

from grader.checks.rule import Hit
from grader.checks.source.ranks.constant_rank_tests import constant_rank_tests
from grader.checks.source.script import Script
from grader.model.finding import Severity

SEVERITY = Severity.WARNING
EXPLAINED_BY = ("IO001", "EVAL012")


def check_source(script: Script) -> Iterable[Hit]:
    """Flag comparisons that no rank, or every rank, passes."""
    for found in constant_rank_tests(script):
        outcome = "true on every rank" if found.on_all else "true on no rank"
        yield Hit(
            message=f"{script.at(found.node)} {found.why} ({script.quote(found.node)}): it is {outcome}, so it tells "
            "no rank from another.",
            hint=found.hint,
            where=(script.location(found.node),),
            fix=found.fix,
        )
