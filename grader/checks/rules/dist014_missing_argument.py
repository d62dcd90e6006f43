"""A call lacks an argument without which it can't run.

## What it finds
`broadcast` without the rank that sends, `reduce` and `send` without the rank that receives, a gathering without what is
to be gathered; and a wrap policy of FSDP that is called where it is to be handed over.

## Why it matters
Python or torch refuses the call as soon as a run gets there: every rank stops with an exception. Where that is after
the first epoch, the epoch was in vain.

## Example
```python
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(build_model())
train(model)
best = torch.zeros(1)
dist.broadcast(best)
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
best = torch.zeros(1)
dist.broadcast(best, src=0)  # rank 0's value goes to all
dist.destroy_process_group()
```

## How it is seen
In the source alone, from the reference pages of `torch.distributed`; arguments behind `*` and `**` are taken for right.
A run that comes to such a call shows it by its exception. Reference:
https://pytorch.org/docs/stable/distributed.html#collective-functions.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.rule import Hit
from grader.checks.source.script import Script
from grader.checks.source.syntax.edits import Edits
from grader.model.finding import Severity
from grader.model.fix import Fix

SEVERITY = Severity.ERROR
_NEEDED = {
    "broadcast": ("tensor", "src"), "reduce": ("tensor", "dst"), "send": ("tensor", "dst"), "isend": ("tensor", "dst"),
    "all_gather": ("tensor_list", "tensor"), "all_gather_object": ("object_list", "obj"),
    "all_gather_into_tensor": ("output_tensor", "input_tensor"), "reduce_scatter": ("output", "input_list"),
    "reduce_scatter_tensor": ("output", "input"), "all_to_all": ("output_tensor_list", "input_tensor_list"),
    "all_to_all_single": ("output", "input"),
}  # fmt: skip
_POLICIES = ("size_based_auto_wrap_policy", "transformer_auto_wrap_policy", "lambda_auto_wrap_policy")
_OF_THE_WRAPPER = ("module", "recurse", "nonwrapped_numel")
_SAYS = {
    "src": "the rank that sends",
    "dst": "the rank that receives",
    "tensor": "what this rank gives",
    "obj": "what this rank gives",
}


def check_source(script: Script) -> Iterable[Hit]:
    """Flag calls that torch refuses for what they were not given."""
    for name, needed in _NEEDED.items():
        for call in script.calls(f"torch.distributed.{name}"):
            missing = _missing(call, needed)
            if missing and not script.guards.alone(call):
                yield _refused(script, call, name, missing[-1])
    for name in _POLICIES:
        for call in script.calls(f"torch.distributed.fsdp.wrap.{name}"):
            if _missing(call, _OF_THE_WRAPPER) == _OF_THE_WRAPPER:
                yield _called_policy(script, call, name)


def _missing(call: ast.Call, needed: tuple[str, ...]) -> tuple[str, ...]:
    """The arguments that a call doesn't get; none where some may hide behind a star."""
    if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
        return ()
    given = {k.arg for k in call.keywords} | set(needed[: len(call.args)])
    return tuple(name for name in needed if name not in given and f"group_{name}" not in given)


def _refused(script: Script, call: ast.Call, name: str, missing: str) -> Hit:
    meant = f", {_SAYS[missing]}" if missing in _SAYS else ""
    root = missing in ("src", "dst")
    return Hit(
        message=f"{script.at(call)} calls `{name}` without `{missing}`{meant}: {script.quote(call)}. The call is "
        "refused, and every rank that gets here stops with an exception.",
        hint=f"Name it on all ranks alike, such as `{missing}=0` for rank 0."
        if root
        else f"Give `{name}` both what it writes to and what it sends: `{', '.join(_NEEDED[name])}`.",
        where=(script.location(call),),
    )


def _called_policy(script: Script, call: ast.Call, name: str) -> Hit:
    given = "".join(f", {ast.unparse(k)}" for k in call.keywords)
    return Hit(
        message=f"{script.at(call)} calls `{name}`: {script.quote(call)}. The wrapper calls it itself for each module "
        "and gives it that module; called here it lacks its first arguments and raises `TypeError`.",
        hint=f"Hand the function over with its settings filled in: `functools.partial({name}{given})`.",
        where=(script.location(call),),
        fix=_handed_over(script, call),
    )


def _handed_over(script: Script, call: ast.Call) -> Fix | None:
    if call.args:
        return None
    edits = Edits(script)
    parts = [edits.text(call.func), *(edits.text(k) for k in call.keywords)]
    edits.replace(call, f"{edits.name('functools.partial', call)}({', '.join(parts)})")
    return edits.fix("Hands the policy over instead of calling it.")
