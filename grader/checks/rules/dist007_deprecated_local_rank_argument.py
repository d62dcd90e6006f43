"""The script is written for a launcher or a torch of the past.

## What it finds
A `--local_rank` argument as the only source of the local rank, and names and arguments that torch has removed, such as
`all_reduce_multigpu`, `torch.distributed.deprecated` or `iterator.next()`.

## Why it matters
torchrun tells ranks by the environment and passes no argument: the value stays at its default on every rank, so that
all of them take GPU 0 or think they are alone, and a required argument stops the script before it begins. The old
`torch.distributed.launch` passes `--local-rank` today, which `--local_rank` does not understand.

## Example
```python
import argparse
import torch
import torch.distributed as dist

parser = argparse.ArgumentParser()
parser.add_argument("--local_rank", type=int, default=0)
args = parser.parse_args()
torch.cuda.set_device(args.local_rank)
dist.init_process_group("nccl")
```

## Use instead
```python
import os
import torch
import torch.distributed as dist

local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
dist.init_process_group("nccl")
```

## How it is seen
In the source: the argument whose value is read while `LOCAL_RANK` is not, and uses of what is gone, unless a `try` or
a test of the version stands around them. In the run it is an error when a rank stopped at one of them. Reference:
"Transitioning from torch.distributed.launch to torchrun", https://pytorch.org/docs/stable/elastic/run.html.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from grader.checks.phrases import at, places, ranks
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.checks.source.collectives.collective_calls import INIT
from grader.checks.source.libraries.removed_apis import Removed, removed
from grader.checks.source.script import Script
from grader.checks.source.syntax.edits import Edits
from grader.model.finding import EvidenceKind, Severity
from grader.model.fix import Fix

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence
    from grader.model.run import Frame, RankRecord

SEVERITY = Severity.WARNING
STOPS = True
_NAMES = {"--local_rank", "--local-rank", "local_rank", "-local_rank"}
_REFUSED = re.compile(r"(required: .*local[-_]rank.*|unrecognized arguments: .*local[-_]rank\S*)")
_ABSENT = re.compile(
    r"has no attribute|cannot import name|No module named|unexpected keyword argument|device_ids type should be"
    r"|Invalid function argument|not a valid ProcessGroup|object has no attribute"
)


def check_source(script: Script) -> Iterable[Hit]:
    """Flag an argument that nobody passes any more, and uses of what torch has removed."""
    if not script.mentions_distributed:
        return
    argument = _argument(script)
    if argument is not None:
        required = _required(argument)
        outcome = (
            "the script stops with “the following arguments are required”"
            if required
            else "its default counts on every rank, so that all of them take the same GPU or think they are alone"
        )
        yield Hit(
            message=f"{script.at(argument)} takes the local rank from the command line alone: "
            f"{script.quote(argument)}. torchrun passes no such argument: {outcome}.",
            hint='Read what torchrun sets: `local_rank = int(os.environ["LOCAL_RANK"])`, and drop the argument.',
            where=(script.location(argument),),
            fix=_reading(script, argument),
        )
    seen: set[int] = set()
    for use in removed(script):
        line = script.location(use.node).line
        if line not in seen and not script.guards.alone(use.node):
            seen.add(line)
            yield _gone(script, use)


def _gone(script: Script, use: Removed) -> Hit:
    name = use.name if "`" in use.name else f"`{use.name}`"
    return Hit(
        message=f"{script.at(use.node)} uses {name}, which today's torch no longer has: {script.quote(use.node)}. "
        "The line stops the rank with an error, and the others wait for it.",
        hint=f"Use {use.instead} instead.",
        where=(script.location(use.node),),
        fix=_replaced(script, use.node),
    )


def _reading(script: Script, argument: ast.Call) -> Fix | None:
    """What torchrun sets as the argument's default."""
    edits, default = Edits(script), script.argument(argument, "default")
    environ = edits.name("os.environ", argument)
    if default is not None:
        edits.give(argument, "default", f'int({environ}.get("LOCAL_RANK", {edits.text(default)}))')
    elif any(k.arg == "required" for k in argument.keywords):
        edits.exchange(argument, "required", "default", f'int({environ}["LOCAL_RANK"])')
    else:
        edits.give_up()
    return edits.fix("Takes the local rank that torchrun has set.")


def _replaced(script: Script, node: ast.AST) -> Fix | None:
    """What took the place of something, where one thing did."""
    edits, above = Edits(script), script.names.tree(node).parent.get(node)
    if (
        isinstance(node, ast.Attribute)
        and node.attr == "next"
        and isinstance(above, ast.Call)
        and not above.args
    ):
        edits.replace(above, f"next({edits.text(node.value)})")
    elif isinstance(node, ast.Import) and [a.name for a in node.names] == ["torch.distributed.deprecated"]:
        name = node.names[0].asname
        edits.rewrite(node, f"import torch.distributed as {name}" if name else "import torch.distributed")
        if name is None:
            edits.give_up()
    elif isinstance(node, ast.Call):
        given = {k.arg: k.value for k in node.keywords}
        if "fsdp_auto_wrap_policy" in given:
            value = edits.text(given["fsdp_auto_wrap_policy"])
            edits.exchange(node, "fsdp_auto_wrap_policy", "auto_wrap_policy", value)
        elif "delay_allreduce" in given:
            edits.take_away(node, "delay_allreduce", "False")
        elif "group" in given:
            edits.take_away(node, "group", "None")
        elif "device_ids" in given and script.names.qualified(node.func) == "torch.distributed.barrier":
            edits.replace(given["device_ids"], f"[{edits.text(given['device_ids'])}]")
    return edits.fix("Writes what today's torch has instead.")


def _argument(script: Script) -> ast.Call | None:
    """The `add_argument("--local_rank")` whose value the script relies on; None where the environment is asked."""
    if not script.calls(INIT) and not script.training.wraps:
        return None
    if any("LOCAL_RANK" in t.constants for t in script.trees) or script.mentioned("get_node_local_rank"):
        return None
    for call in script.called("add_argument"):
        if isinstance(call.func, ast.Attribute):
            names = [a.value for a in call.args if isinstance(a, ast.Constant)]
            read = [
                k.value.value for k in call.keywords if k.arg == "dest" and isinstance(k.value, ast.Constant)
            ]
            if set(names) & _NAMES and (
                _required(call) or script.mentioned(str(read[0]) if read else "local_rank")
            ):
                return call
    return None


def _required(call: ast.Call) -> bool:
    positional = any(isinstance(a, ast.Constant) and not str(a.value).startswith("-") for a in call.args[:1])
    required = any(
        k.arg == "required" and isinstance(k.value, ast.Constant) and k.value.value is True
        for k in call.keywords
    )
    return positional or required


def check_run(evidence: Evidence) -> Observation:
    """Flag ranks that stopped at an argument nobody passed, or at a name that torch no longer has."""
    refused = [
        (n, m)
        for n, text in enumerate(evidence.logs)
        if (m := _REFUSED.search(text[1])) and _failed(evidence, n)
    ]
    if refused:
        return flagged(_refused_hit(evidence, [n for n, _ in refused], refused[0][1][1]))
    gone = {(script_use.path, script_use.line): use for use in removed(evidence.script)
            for script_use in (evidence.script.location(use.node),)}  # fmt: skip
    for rank in evidence.record.ranks:
        frame = _frame(rank)
        use = gone.get((frame.path, frame.line)) if frame is not None else None
        if rank.failure is not None and use is not None and _ABSENT.search(rank.failure.message):
            return flagged(_gone_hit(evidence, use, frame))
    if gone or _argument(evidence.script) is not None:
        return not_observable("No rank stopped at it in this run.")
    if any(r.steps for r in evidence.trace.ranks):
        return verified(
            "The ranks read what torchrun tells them, and stopped at nothing that torch has removed."
        )
    return not_observable("No rank came as far as training.")


def _failed(evidence: Evidence, rank: int) -> bool:
    return bool(rank < len(evidence.record.ranks) and evidence.record.ranks[rank].exit_code)


def _frame(rank: RankRecord) -> Frame | None:
    frames = rank.failure.frames if rank.failure is not None else ()
    return next((f for f in frames if f.in_submission), None)


def _refused_hit(evidence: Evidence, who: list[int], words: str) -> Hit:
    call = next(
        (c for c in evidence.script.all_calls()
         if isinstance(c.func, ast.Attribute) and c.func.attr == "add_argument"
         and {a.value for a in c.args if isinstance(a, ast.Constant)} & _NAMES),
        None,
    )  # fmt: skip
    where = (
        f" {evidence.script.at(call)} asks for the local rank on the command line."
        if call is not None
        else ""
    )
    return Hit(
        message=f"{ranks(who)} stopped while reading the command line: “{words.strip()[:160]}”.{where} torchrun "
        "tells the local rank by the environment and passes no argument.",
        hint='Drop the argument and read `local_rank = int(os.environ["LOCAL_RANK"])`.',
        where=(evidence.script.location(call),) if call is not None else (),
        ranks=tuple(who),
        details={"message": words.strip()[:400]},
        severity=Severity.ERROR,
        evidence=EvidenceKind.OUTSIDE,
    )


def _gone_hit(evidence: Evidence, use: Removed, frame: Frame | None) -> Hit:
    who = [
        r
        for r in evidence.record.ranks
        if (f := _frame(r)) is not None and frame is not None and f.line == frame.line
    ]
    words = next((r.failure.message for r in who if r.failure is not None), "")
    name = use.name if "`" in use.name else f"`{use.name}`"
    return Hit(
        message=f"{ranks(r.rank for r in who)} stopped at {at(frame)}: “{words.strip().splitlines()[0][:160]}”. "
        f"It uses {name}, which today's torch no longer has.",
        hint=f"Use {use.instead} instead.",
        where=places([frame]),
        ranks=tuple(r.rank for r in who),
        details={"messages": {str(r.rank): r.failure.message[:400] for r in who if r.failure is not None}},
        severity=Severity.ERROR,
        evidence=EvidenceKind.OUTSIDE,
    )
