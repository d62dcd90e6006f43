"""Processes are started with arguments that don't fit their function.

## What it finds
`mp.spawn(worker, args=(x), …)`, whose parentheses make no tuple, and worker functions with more or fewer parameters
than they are given, the rank in front included, or with the rank in another place than in front.

## Why it matters
`mp.spawn` calls `worker(rank, *args)`: the rank comes first and by itself. Arguments that don't fit stop every started
process at once, and the parent shows a long traceback from inside torch instead of the line that is wrong.

## Example
```python
import torch.distributed as dist
import torch.multiprocessing as mp

def worker(rank, world_size):
    dist.init_process_group("gloo", rank=rank, world_size=world_size)

if __name__ == "__main__":
    world_size = int(input())
    mp.spawn(worker, args=(world_size), nprocs=world_size)
```

## Use instead
```python
import torch.distributed as dist
import torch.multiprocessing as mp

def worker(rank, world_size):
    dist.init_process_group("gloo", rank=rank, world_size=world_size)

if __name__ == "__main__":
    world_size = int(input())
    mp.spawn(worker, args=(world_size,), nprocs=world_size)
```

## How it is seen
In the source, by counting the function's parameters and the arguments, and by what reaches a parameter that is called a
rank. In the run, by the error of the processes that were started. Reference:
https://pytorch.org/docs/stable/multiprocessing.html#spawning-subprocesses.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from grader.checks.phrases import places, ranks
from grader.checks.rule import Hit, Observation, flagged, idle, not_observable, verified
from grader.checks.source.calls.sites import SPAWNS
from grader.checks.source.ranks.spawned_numbers import is_namespace, number_taken_elsewhere
from grader.checks.source.script import Script
from grader.checks.source.syntax.edits import Edits
from grader.checks.source.syntax.nodes import DISPLAYS, FUNCTIONS, UNKNOWN, Function
from grader.model.finding import EvidenceKind, Severity
from grader.model.fix import Fix

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence

SEVERITY = Severity.ERROR
_REFUSED = re.compile(
    r"must be an iterable, not \w+|(missing|takes) .*positional argument|can only concatenate tuple|"
    r"got multiple values for argument"
)
_HINT = (
    "Write the worker as `def worker(rank, …)`, its first parameter for the rank that `mp.spawn` adds, and hand over "
    "the rest as a tuple: `args=(world_size,)` with a comma, also for one."
)


def check_source(script: Script) -> Iterable[Hit]:
    """Flag spawned functions that can't take what they are given."""
    for call in script.calls(*SPAWNS):
        text = _trouble(script, call)
        if text and not script.guards.alone(call):
            yield Hit(
                message=f"{script.at(call)} starts processes with {script.quote(call)}, but {text}. Each of them stops "
                "before its first line.",
                hint=_HINT,
                where=(script.location(call),),
                fix=_fix(script, call),
            )
        elif (found := number_taken_elsewhere(script, call)) and not script.guards.alone(call):
            rank, given = found.parameter.arg, script.quote(found.given)
            first, *others = [name for name in found.names if name != rank]
            yield Hit(
                message=f"{script.at(found.function)} takes the number of its process as `{rank}`, but "
                f"{script.at(call)} gives the number first: it comes in as `{first}`, and `{rank}` is {given}.",
                hint=f"Put it first: `def {found.function.name}({', '.join((rank, first, *others))})`.",
                where=(script.location(found.function), script.location(call)),
            )


def _fix(script: Script, call: ast.Call) -> Fix | None:
    """A tuple of the one value that was meant to be one."""
    edits, args, target = Edits(script), script.argument(call, "args"), script.argument(call, "fn")
    function = script.graph.definition(target) if target is not None else None
    if (
        args is None
        or not _is_single(script, args)
        or not isinstance(function, FUNCTIONS)
        or _counted(function, 2)
    ):
        return None
    edits.make_tuple(args)
    return edits.fix("Hands the one value over as a tuple.")


def _trouble(script: Script, call: ast.Call) -> str:
    args, target = script.argument(call, "args"), script.argument(call, "fn")
    if args is UNKNOWN or target is None or target is UNKNOWN:
        return ""
    given: int | None = 0
    if args is not None:
        origins = script.values.origins(args)
        if _is_single(script, args):
            return f"`args` is {script.quote(args)}, which is no tuple: parentheses alone don't make one"
        displays = [o for o in origins if isinstance(o, DISPLAYS)]
        listed = displays[0].elts if len(displays) == len(origins) == 1 else None
        given = None if listed is None or any(isinstance(e, ast.Starred) for e in listed) else len(listed)
    function = script.graph.definition(target)
    if given is None or not isinstance(function, FUNCTIONS) or function in script.graph.class_of:
        return ""
    return _counted(function, given + 1)


def _is_single(script: Script, args: ast.expr) -> bool:
    """A value that can't be unpacked: a number, a text in parentheses, the number of processes."""
    if isinstance(args, ast.Name | ast.Attribute) and (script.ranks.world(args) or script.ranks.rank(args)):
        return not any(isinstance(o, ast.Tuple | ast.List) for o in script.values.origins(args))
    if is_namespace(script, args):
        return True
    return all(
        isinstance(o, ast.Constant) and isinstance(o.value, int | float) for o in script.values.origins(args)
    ) or isinstance(args, ast.BinOp | ast.JoinedStr)  # fmt: skip


def _counted(function: Function, given: int) -> str:
    spec = function.args
    most = len(spec.posonlyargs) + len(spec.args)
    least = most - len(spec.defaults)
    if given < least:
        return f"`{function.name}` needs {least} arguments and gets {given}, the rank included"
    if given > most and spec.vararg is None:
        return f"`{function.name}` takes {most} arguments and gets {given}, the rank included"
    return ""


def check_run(evidence: Evidence) -> Observation:
    """Flag started processes that stopped because their function could not be called."""
    spawns = evidence.script.calls(*SPAWNS)
    started = [r for r in evidence.trace.ranks if r.events("process")]
    wrong = [c for c in spawns if _trouble(evidence.script, c)]
    failed = []
    for rank in evidence.record.ranks:
        log = evidence.logs[rank.rank][1] if rank.rank < len(evidence.logs) else ""
        words = _REFUSED.search(f"{rank.failure.message}\n{log}") if rank.failure is not None else None
        if words is not None and rank.failure is not None:
            failed.append((rank, words[0], next((f for f in rank.failure.frames if f.in_submission), None)))
    if failed and wrong:
        return flagged(
            Hit(
                message=f"{ranks(r.rank for r, _, _ in failed)} started processes that stopped at once "
                f"(“{failed[0][1]}”): {evidence.script.at(wrong[0])} has {evidence.script.quote(wrong[0])}, but "
                f"{_trouble(evidence.script, wrong[0])}.",
                hint=_HINT,
                where=(*(evidence.script.location(c) for c in wrong), *places(f for _, _, f in failed)),
                ranks=tuple(r.rank for r, _, _ in failed),
                evidence=EvidenceKind.OUTSIDE,
            )
        )
    if not spawns:
        return (
            idle("The script starts no processes of its own.")
            if evidence.trace.ranks
            else not_observable("No rank ran.")
        )
    if started and not failed:
        return verified("The processes that were started could be called.")
    return not_observable("No process was started.")
