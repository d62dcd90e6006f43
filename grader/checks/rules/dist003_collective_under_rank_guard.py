"""A collective that only some ranks call.

## What it finds
`barrier`, `all_reduce`, `broadcast`, `gather` and their relatives (wrapping a model is one of them) under a test of the
rank, while the other ranks pass by.

## Why it matters
A collective is a meeting of all ranks of the group. Those who come wait for those who don't: the run stands still until
the group's time limit (10 minutes with NCCL, 30 with gloo) and then dies far away from the line that caused it.

## Example
```python
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
if dist.get_rank() == 0:
    total = torch.tensor([local_sum])
    dist.all_reduce(total)
    print(f"sum over all ranks: {total.item()}")
dist.destroy_process_group()
```

## Use instead
```python
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
total = torch.tensor([local_sum])
dist.all_reduce(total)
if dist.get_rank() == 0:
    print(f"sum over all ranks: {total.item()}")
dist.destroy_process_group()
```

## How it is seen
In the source: the conditions around each collective, early `return`s and helpers included; two branches that meet in the
same collective (rank 0 first, then the others) are right and not flagged. In the run: a deadlock in which the ranks' own
stacks show who waits where. Reference: https://pytorch.org/docs/stable/distributed.html#collective-functions.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from grader.checks.collectives import Collective
from grader.checks.conditions import Which
from grader.checks.definition import start
from grader.checks.guards import Guard
from grader.checks.rule import Hit
from grader.checks.source import Script
from grader.model.finding import Location, Severity

SEVERITY = Severity.ERROR
_WHO = {Which.MAIN: "rank 0", Which.OTHERS: "all ranks but rank 0", Which.SOME: "some ranks"}


@dataclass(frozen=True, slots=True)
class _Suspect:
    call: ast.Call
    guard: Guard
    collectives: tuple[Collective, ...]


def check_source(script: Script) -> Iterable[Hit]:
    """Flag collectives, direct or inside a helper, under a rank test whose other branch has none."""
    if not script.collectives.direct:
        return
    suspects = list(_suspects(script))
    for suspect in suspects:
        if not _met_elsewhere(script, suspect, suspects):
            yield _hit(script, suspect)


def _suspects(script: Script) -> Iterable[_Suspect]:
    for tree in script.trees:
        for call in tree.calls:
            inside = script.collectives.of(call)
            if not inside:
                continue
            guard = script.guards.partial(call)
            if guard is not None and guard.condition.sure and not script.guards.alone(call):
                yield _Suspect(call, guard, inside)


def _met_elsewhere(script: Script, suspect: _Suspect, suspects: list[_Suspect]) -> bool:
    """Whether the ranks that do not come here meet the others in a collective of their own branch."""
    tree = script.names.tree(suspect.call)
    branch = tree.parent.get(suspect.guard.test)
    if isinstance(branch, ast.If):
        here = branch.body if any(tree.inside(suspect.call, s) for s in branch.body) else branch.orelse
        there = branch.orelse if here is branch.body else branch.body
        if any(script.collectives.inside(s) for s in there):
            return True
    names = {c.name for c in suspect.collectives}
    function = tree.function(suspect.call)
    for other in suspects:
        if other.call is suspect.call or script.names.tree(other.call).function(other.call) is not function:
            continue
        opposite = other.guard.condition.which is suspect.guard.condition.negated().which
        if opposite and names & {c.name for c in other.collectives} and other.guard.test is not suspect.guard.test:
            return True
    return False


def _hit(script: Script, suspect: _Suspect) -> Hit:
    first = suspect.collectives[0]
    who = _WHO[suspect.guard.condition.which]
    where: list[Location] = [script.location(suspect.call)]
    through = ""
    if first.call is not suspect.call:
        where.append(script.location(first.call))
        through = f", which runs `{first.name}` at {script.at(first.call)}"
    test = script.quote(suspect.guard.test)
    side = "under" if start(suspect.guard.test) <= start(suspect.call) else "by"
    return Hit(
        message=f"{script.at(suspect.call)} calls {script.quote(suspect.call)}{through}, {side} the test {test}: only {who} "
        "gets there. A collective waits for every rank of the group, so the run stands still.",
        hint="Let all ranks make the call and keep only what needs one rank (printing, saving) under the test.",
        where=tuple(where),
    )
