"""The ranks load a file that one rank may still be writing.

## What it finds
A checkpoint that one rank saves under a test of the rank and that all ranks load further down, with nothing in between
that makes them wait. Files that each rank writes for itself and that are all read further down, in the same way.

## Why it matters
While rank 0 writes, the others are already at the load. They read half a file and crash, or find the old one and go on
with the weights of the epoch before: then the ranks hold different models, and nothing says so.

## Example
```python
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(build_model())
train(model)
if dist.get_rank() == 0:
    torch.save(model.module.state_dict(), "best.pt")
model.module.load_state_dict(torch.load("best.pt"))
dist.destroy_process_group()
```

## Use instead
```python
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(build_model())
train(model)
if dist.get_rank() == 0:
    torch.save(model.module.state_dict(), "best.pt")
dist.barrier()  # the file is whole
model.module.load_state_dict(torch.load("best.pt"))
dist.destroy_process_group()
```

## How it is seen
In the source: the last save of a path before a load of the same path, where a rank test keeps ranks from the one and
not from the other, and neither a collective nor a training step stands between; and reads of one file per rank below
the write of the rank's own, with no collective and no look at the files between. Reference: "Save and Load
Checkpoints", https://pytorch.org/tutorials/intermediate/ddp_tutorial.html.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from grader.checks.rule import Hit
from grader.checks.source.calls.uncalled_methods import meeting, uncalled_between
from grader.checks.source.collectives.collective_calls import INIT
from grader.checks.source.collectives.joined_groups import in_group
from grader.checks.source.files.rank_files import read_too_early
from grader.checks.source.files.rank_paths import path_text
from grader.checks.source.script import Script
from grader.checks.source.syntax.edits import Edits
from grader.checks.source.syntax.nodes import ancestors, end, start
from grader.model.finding import Severity
from grader.model.fix import Fix

SEVERITY = Severity.WARNING
_MAX_DEPTH = 3
_WAITS = ("barrier", "wait_for_everyone", "wait", "synchronize", "rendezvous", "sleep", "train", "fit")


@dataclass(frozen=True, slots=True)
class _Event:
    """A save or a load, with the statement of the common body that leads to it."""

    call: ast.Call
    place: ast.Call
    path: str
    guarded: bool


def check_source(script: Script) -> Iterable[Hit]:
    """Flag loads on all ranks of a file that one rank has just saved."""
    if not script.joins_group or not (script.training.trains or script.training.wraps or script.calls(INIT)):
        return
    saves = [e for c in script.calls("torch.save") for e in _events(script, c, "f")]
    loads = [e for c in script.calls("torch.load") for e in _events(script, c, "")]
    saved: dict[tuple[str, ast.AST], list[_Event]] = {}
    for save in saves:
        saved.setdefault((save.path, _scope(script, save)), []).append(save)
    for early in read_too_early(script):
        where = (script.location(early.read), script.location(early.write))
        yield Hit(early.says, early.hint, where, fix=_barrier_below(script, early.write))
    told: set[ast.Call] = set()
    for load in loads:
        if load.guarded or load.call in told:
            continue
        beside = saved.get((load.path, _scope(script, load)), ())
        before = [s for s in beside if _follows(script, s.place, load.place)]
        if not before:
            continue
        save = max(before, key=lambda s: start(s.place))
        if save.guarded and not _met(script, save.place, load.place):
            told.add(load.call)
            named = uncalled_between(script, save.call, load.call)
            yield Hit(
                message=f"{script.at(load.call)} loads on every rank what one rank alone saves at "
                f"{script.at(save.call)}, and nothing between them makes the others wait: they may read half a file, "
                "or the one from before.",
                hint=meeting(script, named[0])
                if named
                else "Put `dist.barrier()` between the save and the load.",
                where=(script.location(load.call), script.location(save.call)),
                # Two that wait would be one too many.
                fix=None if named else _fix(script, load),
            )


def _fix(script: Script, load: _Event) -> Fix | None:
    edits = Edits(script)
    if not in_group(script, load.place) or script.guards.partial(load.place) is not None:
        return None
    edits.before(
        script.names.tree(load.place).statement(load.place),
        f"{edits.name('torch.distributed.barrier', load.place)}()",
    )
    return edits.fix("Has all ranks wait until the file is written.")


def _barrier_below(script: Script, write: ast.Call) -> Fix | None:
    edits = Edits(script)
    statement = script.names.tree(write).statement(write)
    alone = isinstance(statement, ast.Expr) and statement.value is write
    if not alone or not in_group(script, write) or script.guards.partial(write) is not None:
        return None
    edits.after(statement, f"{edits.name('torch.distributed.barrier', write)}()")
    return edits.fix("Has all ranks wait until each of them has written its file.")


def _events(script: Script, call: ast.Call, parameter: str) -> Iterable[_Event]:
    """A save or load seen from its own function, and from those that call this one."""
    given = script.argument(call, parameter) if parameter else (call.args[0] if call.args else None)
    path = path_text(script, given)
    if not path:
        return
    guarded = script.guards.partial(call) is not None
    yield _Event(call, call, path, guarded)
    work = [(call, guarded)]
    seen = set(work)
    for _ in range(_MAX_DEPTH):
        above: list[tuple[ast.Call, bool]] = []
        for node, under in work:
            function = script.names.tree(node).function(node)
            for site in script.graph.sites(function) if function is not None else ():
                way = (site.call, under or script.guards.partial(site.call) is not None)
                if way not in seen:
                    seen.add(way)
                    above.append(way)
                    yield _Event(call, way[0], path, way[1])
        work = above


def _scope(script: Script, event: _Event) -> ast.AST:
    tree = script.names.tree(event.place)
    return tree.function(event.place) or tree.root


def _follows(script: Script, first: ast.Call, second: ast.Call) -> bool:
    """Whether two calls stand in one function, one below the other, on branches that don't exclude each other."""
    tree = script.names.tree(first)
    if script.names.tree(second) is not tree or tree.function(first) is not tree.function(second):
        return False
    if end(first) >= start(second):
        return False
    for above in ancestors(tree.parent, first):
        if isinstance(above, ast.If) and tree.inside(second, above):
            return any(tree.inside(first, s) for s in above.body) == any(
                tree.inside(second, s) for s in above.body
            )
    return True


def _met(script: Script, save: ast.Call, load: ast.Call) -> bool:
    """Whether the ranks meet between two calls: in a collective, a training step, or a helper that says it waits."""
    tree = script.names.tree(save)
    scope: ast.AST = tree.function(save) or tree.root
    for call in tree.calls_within(scope):
        if not end(save) <= start(call) < start(load) or tree.function(call) is not tree.function(save):
            continue
        named = isinstance(call.func, ast.Attribute | ast.Name) and any(
            w in ast.unparse(call.func) for w in _WAITS
        )
        if named or script.collectives.of(call) or script.training.runs_backward(call):
            return True
    # A helper that ends in a barrier of its own.
    return any(c.name.endswith("barrier") for c in script.collectives.of(save))
