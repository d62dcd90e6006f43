"""One machine of several downloads, and the others find nothing.

## What it finds
In a run on several machines: a data set that is asked to be downloaded on one of them only, most often behind
`if rank == 0:`.

## Why it matters
Rank 0 lives on one machine. What it downloads lies on that machine's disk, and the ranks of all others find an empty
folder, unless every machine happens to see the same file system. One rank of *each* machine has to fetch: the one
whose local rank is 0.

## Example
```python
import torch.distributed as dist
from torchvision import datasets

dist.init_process_group("gloo")
if dist.get_rank() == 0:
    datasets.FashionMNIST("data", train=True, download=True)
dist.barrier()
train_set = datasets.FashionMNIST("data", train=True)
dist.destroy_process_group()
```

## Use instead
```python
import os
import torch.distributed as dist
from torchvision import datasets

dist.init_process_group("gloo")
if int(os.environ["LOCAL_RANK"]) == 0:  # one rank per machine
    datasets.FashionMNIST("data", train=True, download=True)
dist.barrier()
train_set = datasets.FashionMNIST("data", train=True)
dist.destroy_process_group()
```

## How it is seen
In runs on several machines alone: by the machines whose ranks asked for a download. On one machine the two guards mean
the same, and nothing is said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from grader.checks.phrases import at, listed, places
from grader.checks.rule import Hit, Observation, flagged, idle, not_observable, verified
from grader.model.finding import Severity
from grader.model.precondition import Precondition

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence

SEVERITY = Severity.WARNING
NEEDS = Precondition.MACHINES


def check_run(evidence: Evidence) -> Observation:
    """Compare the machines that downloaded with those there are."""
    from grader.checks.run.nodes import ranks_by_node

    nodes = ranks_by_node(evidence.trace)
    if not nodes:
        return not_observable("Not every rank told which machine it is on.")
    asked = {
        number: events
        for number, found in enumerate(nodes)
        if (events := [e for rank in found for e in evidence.rank(rank).events("download")])
    }
    if not asked:
        return idle("No rank asked for a download.")
    if len(asked) == len(nodes):
        return verified(f"On each of {len(nodes)} machines a rank asked for the download.")
    lacking = [str(number) for number in range(len(nodes)) if number not in asked]
    events = [event for found in asked.values() for event in found]
    return flagged(
        Hit(
            message=f"{at(events[0].site)} downloads on machine {listed([str(n) for n in asked])} of {len(nodes)}: the "
            f"ranks of machine {listed(lacking)} have nothing to read but what happens to lie there already.",
            hint='Guard the download by the local rank, `if int(os.environ["LOCAL_RANK"]) == 0:`, so that one rank of '
            "each machine fetches, and let a `dist.barrier()` follow.",
            where=places([e.site for e in events]),
            ranks=tuple(
                sorted({r for number in asked for r in nodes[number] if evidence.rank(r).events("download")})
            ),
        )
    )
