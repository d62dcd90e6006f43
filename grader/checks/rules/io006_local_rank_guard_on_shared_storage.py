"""A test of the local rank guards a file that all machines share.

## What it finds
A checkpoint or log file written under `local_rank == 0` (or `rank % gpus_per_node == 0`), to a path without the node in
it.

## Why it matters
Every machine has a local rank 0. On one machine this is the same as rank 0; on four machines with a shared file system
four processes write the same file at the same time, over each other.

## Example
```python
import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
local_rank = int(os.environ["LOCAL_RANK"])
model = DistributedDataParallel(build_model())
train(model)
if local_rank == 0:
    torch.save(model.module.state_dict(), "model.pt")
dist.destroy_process_group()
```

## Use instead
```python
import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
local_rank = int(os.environ["LOCAL_RANK"])  # for the device, and for what each machine does once, such as downloads
model = DistributedDataParallel(build_model())
train(model)
if dist.get_rank() == 0:
    torch.save(model.module.state_dict(), "model.pt")
dist.destroy_process_group()
```

## How it is seen
In the source: the rank test on the way to each write, followed to where its number comes from. Downloads and unpacking
per machine are right that way, and so are paths with the machine in them. It is a hint as long as one machine runs the
script; on several machines two ranks write one file, and it is an error.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from grader.checks.phrases import ranks
from grader.checks.rule import Hit, Observation, flagged, idle
from grader.checks.source.calls.ways import ways_to
from grader.checks.source.collectives.collective_calls import INIT
from grader.checks.source.files.file_writes import checkpoints, files
from grader.checks.source.files.rank_paths import same_for_all
from grader.checks.source.ranks.rank_guards import Guard
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import name_of, walk
from grader.model.finding import Severity
from grader.model.precondition import Precondition

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence

SEVERITY = Severity.HINT
NEEDS = Precondition.MACHINES
_LOCAL_VARIABLES = {
    "LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "MV2_COMM_WORLD_LOCAL_RANK",
}  # fmt: skip
_LOCAL_CALLS = {"torch.distributed.get_node_local_rank", "horovod.torch.local_rank"}
_ALL_PROCESSES = {
    "WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "torch.distributed.get_world_size", "horovod.torch.size",
}  # fmt: skip
_LOCAL_NAME = re.compile(r"local_?(rank|main|master|zero)|is_local|rank_?local", re.IGNORECASE)
# In a path: what differs from machine to machine, or lies on a disk of the machine's own.
_OWN_DISK = re.compile(
    r"hostname|node(name)?$|node_?(rank|id)|^/tmp|TMPDIR|^/scratch|^/local|SLURM_NODEID|GROUP_RANK"
)
_MAX_DEPTH = 5


def check_source(script: Script) -> Iterable[Hit]:
    """Flag writes to one path that only a test of the local rank guards."""
    if not script.joins_group or not (script.training.trains or script.training.wraps or script.calls(INIT)):
        return
    found: dict[ast.Call, Guard] = {}
    for write, path in (*checkpoints(script), *files(script)):
        guard = _local_guard(script, write)
        if guard is not None and same_for_all(script, path) and not _own_disk(script, path):
            found[write] = guard
    if not found:
        return
    first = next(iter(found))
    yield Hit(
        message=f"{script.at(first)} writes {script.quote(first)} under {script.quote(found[first].test)}, a test of "
        "the local rank. Every machine has a local rank 0: on several machines with a shared disk all of these write "
        "the same file over each other.",
        hint="Guard what is written once for the whole run by the global rank: `if dist.get_rank() == 0:`.",
        where=tuple(script.location(c) for c in found),
    )


def _local_guard(script: Script, node: ast.Call) -> Guard | None:
    """The rank test on the way to a call, where it is one of the local rank and no other stands beside it."""

    def guarded(place: ast.AST) -> list[Guard]:
        return [g for g in script.guards.around(place) if g.condition.partial]

    ways = ways_to(script.names, script.graph, node, most=_MAX_DEPTH, goes_on=lambda p: not guarded(p))
    for guards in map(guarded, ways):
        if guards and all(isinstance(g.test, ast.expr) and _is_local(script, g.test) for g in guards):
            return guards[0]
    return None


def _is_local(script: Script, test: ast.expr) -> bool:
    """Whether what a test says about ranks it says about the local one alone."""
    kinds = {_kind(script, n) for n in walk(test) if isinstance(n, ast.expr)} - {""}
    return kinds == {"local"}


def _kind(script: Script, node: ast.expr) -> str:
    """`local`, `global` or "" for a part of a test."""
    if not isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript | ast.BinOp):
        return ""
    above = script.names.tree(node).parent.get(node)
    if isinstance(above, ast.BinOp | ast.Attribute) or (isinstance(above, ast.Call) and node is above.func):
        return ""  # a part of something that is judged as a whole
    if _numbers_machine(script, node):
        return "global"  # beside the local rank it tells one process from all others
    if not script.ranks.rank(node):
        return _predicate(script, node)
    origins = script.values.origins(node)
    if _joins_with(script, origins):
        return "global"
    return "local" if origins and all(_local(script, o, node) for o in origins) else "global"


def _predicate(script: Script, node: ast.expr) -> str:
    """What a truth value asks: `is_local_main()`, `self.is_master`."""
    if isinstance(node, ast.BinOp | ast.Subscript) or not script.conditions.of(node).partial:
        return ""
    asked = [o for o in script.values.origins(node) if isinstance(o, ast.Compare)]
    if asked:
        return "local" if all(_is_local(script, a) for a in asked) else "global"
    return "local" if _LOCAL_NAME.search(name_of(node)) else "global"


def _local(script: Script, origin: ast.AST, node: ast.expr) -> bool:
    if isinstance(origin, ast.Constant):
        return True  # a default, such as -1, beside the real thing
    inner = origin
    while isinstance(inner, ast.Call) and name_of(inner) in ("int", "str") and inner.args:
        inner = inner.args[0]
    if isinstance(inner, ast.expr) and script.ranks.environment(inner):
        return script.ranks.environment(inner) in _LOCAL_VARIABLES
    if isinstance(inner, ast.Call) and script.names.qualified(inner.func) == "torch.multiprocessing.spawn":
        # The number of a process on its machine, where the rank is worked out from it and the machine's number.
        given = [script.argument(c, "rank") for c in script.calls(INIT)]
        return any(isinstance(o, ast.BinOp) for g in given if g is not None for o in script.values.origins(g))
    if isinstance(inner, ast.Call):
        return script.names.qualified(inner.func) in _LOCAL_CALLS or name_of(inner) == "local_rank"
    if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Mod):
        per_machine = script.ranks.world(inner.right) and not _counts_all(script, inner.right)
        return bool(script.ranks.rank(inner.left) and per_machine)
    if isinstance(inner, ast.Name | ast.Attribute | ast.arg):
        return bool(_LOCAL_NAME.search(name_of(inner)))
    return bool(_LOCAL_NAME.search(name_of(node)))


def _counts_all(script: Script, size: ast.expr) -> bool:
    """Whether a number of processes is that of all machines together: a rank modulo it is the rank itself."""
    origins = script.values.origins(size)
    return any(
        script.ranks.environment(o) in _ALL_PROCESSES
        or (isinstance(o, ast.Call) and script.names.qualified(o.func) in _ALL_PROCESSES)
        for o in origins
    )


def _numbers_machine(script: Script, node: ast.expr) -> bool:
    """`node` of `init_process_group(rank=node * gpus + gpu)`."""
    given = [script.argument(c, "rank") for c in script.calls(INIT)]
    sums = [o for g in given if g is not None for o in script.values.origins(g) if isinstance(o, ast.BinOp)]
    products = [n for s in sums for n in walk(s) if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mult)]
    factors = {p for n in products for f in (n.left, n.right) for p in script.values.pieces(f)}
    return not script.ranks.world(node) and not factors.isdisjoint(script.values.pieces(node))


def _joins_with(script: Script, origins: tuple[ast.AST, ...]) -> bool:
    """Whether the number is handed to `init_process_group` as it is: then it is the global rank, whatever its name."""
    for call in script.calls(INIT):
        given = script.argument(call, "rank")
        if given is not None and set(script.values.origins(given)) & set(origins):
            return True
    return False


def _own_disk(script: Script, path: ast.expr | None) -> bool:
    if path is None:
        return False
    for node in script.values.closure(path):
        text = str(node.value) if isinstance(node, ast.Constant) else name_of(node)
        if text and _OWN_DISK.search(text):
            return True
    return False


def check_run(evidence: Evidence) -> Observation:
    """On several machines the source's finding is an error; on one it stays advice."""
    starts = [r.start for r in evidence.trace.ranks if r.start is not None]
    first = sorted(s.rank for s in starts if s.local_rank == 0)
    hits = list(check_source(evidence.script))
    writers = {f.path: set[int]() for r in evidence.trace.ranks for f in r.files if f.out}
    for rank in evidence.trace.ranks:
        for path in {f.path for f in rank.files if f.out and f.op == "open"} | {
            s.path for s in rank.saves if s.out
        }:
            writers.setdefault(path, set()).add(rank.rank)
    twice = {p for p, who in writers.items() if who == set(first)}
    if hits and twice:
        more = f" In this run {ranks(first).lower()} did, each local rank 0 of its machine."
        return flagged(
            *(replace(h, message=h.message + more, ranks=tuple(first), severity=Severity.ERROR) for h in hits)
        )
    return idle("No file was written once per machine.")
