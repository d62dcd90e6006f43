"""The local rank is used as the rank among all processes.

## What it finds
`LOCAL_RANK` given as `rank` to `init_process_group` or to a `DistributedSampler` that divides by the whole world size.

## Why it matters
The local rank counts from 0 on every machine, the global rank over all of them. With two machines two processes call
themselves rank 0: the group never forms, or both read the same shard while half of the data is read by nobody. On one
machine the two numbers are the same, so it shows only later.

## Example
```python
import os
import torch.distributed as dist

local_rank = int(os.environ["LOCAL_RANK"])
world_size = int(os.environ["WORLD_SIZE"])
dist.init_process_group("nccl", rank=local_rank, world_size=world_size)
```

## Use instead
```python
import os
import torch.distributed as dist

rank = int(os.environ["RANK"])
world_size = int(os.environ["WORLD_SIZE"])
dist.init_process_group("nccl", rank=rank, world_size=world_size)
```

## How it is seen
In the source alone: the argument is followed to the local rank, the number of processes to something other than the
processes of one machine. Reference: "Definitions", https://pytorch.org/docs/stable/elastic/run.html.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.rule import Hit
from grader.checks.source.collectives.collective_calls import INIT
from grader.checks.source.ranks.spawned_numbers import number_taken_elsewhere
from grader.checks.source.ranks.written_ranks import global_rank
from grader.checks.source.script import Script
from grader.checks.source.syntax.edits import Edits
from grader.checks.source.syntax.nodes import UNKNOWN, name_of, start, walk
from grader.checks.source.training_loops import SAMPLER
from grader.model.finding import Severity
from grader.model.fix import Fix

SEVERITY = Severity.HINT


def check_source(script: Script) -> Iterable[Hit]:
    """Hint at local ranks in the place of global ones."""
    wrong: list[ast.Call] = []
    for call in script.calls(INIT, SAMPLER):
        rank = script.given(call, "rank")
        if rank is None or script.guards.alone(call):
            continue
        size = script.argument(call, "num_replicas") or script.argument(call, "world_size")
        if script.ranks.kind(rank) == "local" and not _of_one_machine(script, size):
            wrong.append(call)
    yield from _rank_of_the_machine(script)
    yield from _machines_as_ranks(script)
    wrong.sort(key=lambda n: (script.location(n).path, start(n)))
    if wrong:
        first = wrong[0]
        yield Hit(
            message=f"{script.at(first)} gives the local rank where the rank among all processes belongs: "
            f"{script.quote(first)}. On a second machine the local ranks start at 0 again, so two processes take the "
            "same place and others stay empty.",
            hint='Use `dist.get_rank()` or `int(os.environ["RANK"])` here, and keep the local rank for the device.',
            where=tuple(dict.fromkeys(script.location(c) for c in wrong)),
            fix=_fix(script, wrong),
        )


def _rank_of_the_machine(script: Script) -> Iterable[Hit]:
    """A spawned process that joins with a rank in which its own number has no part: all of a machine take one place."""
    for call in script.calls(INIT):
        rank = script.argument(call, "rank")
        function = script.names.tree(call).function(call)
        sites = script.graph.sites(function) if function is not None else []
        if rank is None or function is None or not isinstance(rank, ast.Name | ast.Attribute):
            continue
        first = next(iter((*function.args.posonlyargs, *function.args.args)), None)
        started = [s for s in sites if s.spawned and s.skipped == 1]
        numbers = [script.argument(s.call, "nprocs") for s in started]
        several = bool(numbers) and all(n is not None and script.values.constant(n) != 1 for n in numbers)
        if first is None or not several or len(started) < len(sites) or _own_number(script, rank, first):
            continue
        if any(number_taken_elsewhere(script, s.call) for s in started):
            continue  # it should, and its place among the parameters is wrong
        yield Hit(
            message=f"{script.at(call)} joins with the rank {script.quote(rank)}, in which the number of the spawned "
            f"process, `{first.arg}`, has no part: all processes of one machine take the same place.",
            hint=f"Count by machine and process: `rank=node_rank * processes_per_node + {first.arg}`.",
            where=(script.location(call),),
            severity=Severity.ERROR,
        )


def _machines_as_ranks(script: Script) -> Iterable[Hit]:
    """A process that joins with its machine's number in a world of several processes on each machine."""
    for call in script.calls(INIT):
        rank, size = script.argument(call, "rank"), script.argument(call, "world_size")
        if rank is None or size is None or UNKNOWN in (rank, size) or script.graph.spawn_sites:
            continue
        product = next((o for o in script.values.origins(size) if isinstance(o, ast.BinOp)), None)
        if product is None or not isinstance(product.op, ast.Mult) or not _numbers_machines(script, rank):
            continue
        if not any(script.values.constant(side) == 1 for side in (product.left, product.right)):
            yield Hit(
                message=f"{script.at(call)} joins a world of {script.quote(product)} processes with the rank "
                f"{script.quote(rank)}, which numbers machines: the ranks between the machines' numbers never come, "
                "and the group waits for them.",
                hint='Take both from the launcher, `int(os.environ["RANK"])` and `int(os.environ["WORLD_SIZE"])`, or '
                "start one process for each rank and count by machine and process.",
                where=(script.location(call),),
                severity=Severity.WARNING,
            )


def _numbers_machines(script: Script, rank: ast.expr) -> bool:
    """Whether a rank is a machine's number and nothing else: `NODE_RANK`, `SLURM_NODEID`."""
    read = [n for n in script.values.closure(rank) if script.ranks.environment(n)]
    if any(isinstance(n, ast.BinOp) for n in script.values.closure(rank)):
        return False
    return bool(read) and all("NODE" in script.ranks.environment(n).upper() for n in read)


def _own_number(script: Script, rank: ast.expr, first: ast.arg) -> bool:
    """Whether the first parameter may have a part in a rank, by a name, an attribute or a call that nobody follows."""
    for node in script.values.closure(rank):
        if node is first or (isinstance(node, ast.Name) and node.id == first.arg):
            return True
        if isinstance(node, ast.Call) and name_of(node) not in ("ArgumentParser", "parse_args", "int"):
            return True
    stored = name_of(rank)
    return any(stored in tree.attributes for tree in script.trees)


def _fix(script: Script, wrong: list[ast.Call]) -> Fix | None:
    edits = Edits(script)
    for call in wrong:
        starts = script.names.qualified(call.func) == INIT
        variable = f'int({edits.name("os.environ", call)}["RANK"])' if starts else ""
        edits.give(call, "rank", variable or global_rank(script, edits, call))
    return edits.fix("Counts by the rank among all processes.") if not script.graph.spawn_sites else None


def _of_one_machine(script: Script, size: ast.expr | None) -> bool:
    """A number of processes that is one machine's own, so that local ranks are the right ones to count by."""
    if size is None or size is UNKNOWN:
        return size is UNKNOWN
    for node in script.values.closure(size):
        if script.ranks.environment(node) == "LOCAL_WORLD_SIZE":
            return True
    words = [name_of(n).lower() for o in script.values.origins(size) for n in walk(o)]
    return any("local" in w or "device_count" in w or "per_node" in w or "ngpus" in w for w in words)
