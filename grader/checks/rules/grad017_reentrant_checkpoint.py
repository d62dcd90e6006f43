"""Reentrant activation checkpointing under DDP that searches for unused parameters.

## What it finds
`torch.utils.checkpoint` with `use_reentrant=True` in a model wrapped with `find_unused_parameters=True`, or around
layers that are used twice.

## Why it matters
The reentrant way runs a backward pass inside the backward pass. DDP then sees gradients of one parameter twice, or has
already counted it as unused, and stops with "Expected to mark a variable ready only once".

## Example
```python
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint


def forward_in_pieces(blocks, x):
    for block in blocks:
        x = checkpoint(block, x, use_reentrant=True)
    return x


model = DistributedDataParallel(build_model(forward_in_pieces), find_unused_parameters=True)
```

## Use instead
```python
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint


def forward_in_pieces(blocks, x):
    for block in blocks:
        x = checkpoint(block, x, use_reentrant=False)
    return x


model = DistributedDataParallel(build_model(forward_in_pieces), find_unused_parameters=True)
```

## How it is seen
In the run, by DDP's exception. In the source, by `use_reentrant=True` beside `find_unused_parameters=True`;
`static_graph=True`, which makes the two go together, is not flagged.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING

from grader.checks.phrases import at, place, ranks
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.checks.source.script import Script
from grader.checks.source.syntax.edits import Edits
from grader.checks.source.syntax.nodes import name_of
from grader.model.finding import Severity
from grader.model.fix import Fix

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence

SEVERITY = Severity.ERROR

_TWICE = "mark a variable ready only once"
_CHECKPOINTS = ("torch.utils.checkpoint.checkpoint", "torch.utils.checkpoint.checkpoint_sequential")
_HINT = (
    "Pass `use_reentrant=False` to `checkpoint`: it gives the same gradients without a second backward pass."
)


def check_source(script: Script) -> Iterable[Hit]:
    """Flag reentrant checkpoints beside a search for unused parameters."""
    if script.training.framework:
        return
    searching = [w for w in script.training.wraps if _flag(script, w, "find_unused_parameters") is True]
    if not searching or any(_flag(script, w, "static_graph") is True for w in script.training.wraps):
        return
    if script.mentioned("_set_static_graph"):
        return
    for call in script.calls(*_CHECKPOINTS):
        if _flag(script, call, "use_reentrant") is True:
            yield Hit(
                message=f"{script.at(call)} checkpoints reentrantly in a model that {script.at(searching[0])} wraps "
                "with `find_unused_parameters=True`. DDP then meets the same parameters twice in one backward pass, "
                "and stops.",
                hint=_HINT,
                where=(script.location(call),),
                fix=_fix(script, call),
            )


def _fix(script: Script, call: ast.Call) -> Fix | None:
    edits = Edits(script)
    edits.give(call, "use_reentrant", "False")
    return edits.fix("Checkpoints without a second backward pass.")


def _flag(script: Script, call: ast.Call, name: str) -> object:
    given = script.argument(call, name)
    return script.values.constant(given) if given is not None else None


def check_run(evidence: Evidence) -> Observation:
    """Flag DDP's complaint about a parameter that came twice."""
    from grader.checks.run.endings.exception_places import exception_places

    wrapped = [r for r in evidence.trace.ranks if any(w.kind == "ddp" for w in r.wraps)]
    if not wrapped:
        return not_observable("No model was wrapped in DDP.")
    failed = [
        (r, e) for r in wrapped for e in r.events("exception") if _TWICE in str(e.fields.get("message", ""))
    ]
    if not failed:
        if not evidence.trace.trainers:
            return not_observable("No step through DDP was seen.")
        return verified("DDP met every parameter once per backward pass.")
    calls = [c for c in evidence.script.all_calls() if name_of(c) in ("checkpoint", "checkpoint_sequential")]
    site = next(iter(exception_places(failed[0][1])), failed[0][1].site)
    lines = [evidence.script.location(c) for c in calls]
    cause = (
        "reentrant checkpointing runs a backward pass of its own"
        if calls
        else "a part of the model is used twice"
    )
    return flagged(
        Hit(
            message=f"{ranks(r.rank for r, _ in failed)} stopped in {at(site, 'the backward pass')}: DDP met a "
            f"parameter's gradient twice in one backward pass, since {cause}.",
            hint=_HINT
            if calls
            else "Use shared layers through one forward pass, or wrap with `static_graph=True`.",
            where=tuple(dict.fromkeys((*lines, *place(site)))),
            ranks=tuple(r.rank for r, _ in failed),
        )
    )
