"""Micro-batches exchange gradients that nobody steps on yet.

## What it finds
Gradient accumulation under DDP in which every backward pass averages gradients over the ranks, although only the last
one before each step has to; also a `no_sync()` block around `backward` alone, which changes nothing.

## Why it matters
The result is the same, so this is free advice: with four micro-batches per step, three of four exchanges are waste, and
on several GPUs they are what the step waits for. DDP decides in the *forward* pass whether to exchange, so
that one has to stand inside `no_sync()`.

## Example
```python
from torch.nn.parallel import DistributedDataParallel

model = DistributedDataParallel(build_model())
for i, (images, labels) in enumerate(train_loader):
    loss = loss_of(model(images), labels) / 4
    loss.backward()
    if (i + 1) % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
```

## Use instead
```python
import contextlib

from torch.nn.parallel import DistributedDataParallel

model = DistributedDataParallel(build_model())
for i, (images, labels) in enumerate(train_loader):
    last = (i + 1) % 4 == 0
    with contextlib.nullcontext() if last else model.no_sync():
        loss = loss_of(model(images), labels) / 4
        loss.backward()
    if last:
        optimizer.step()
        optimizer.zero_grad()
```

## How it is seen
In the source, by a step that only every n-th backward pass reaches, with neither `no_sync` nor
`require_backward_grad_sync` anywhere. In the run, by several backward passes per step of one optimizer that were all
prepared to exchange gradients.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING

from grader.checks.phrases import at, count, first_known, place, ranks
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import start
from grader.model.finding import Severity
from grader.model.precondition import Precondition

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence

SEVERITY = Severity.HINT
NEEDS = Precondition.GROUP
_HINT = (
    "Run forward and backward of all micro-batches but the last inside `with model.no_sync():`; "
    "the last one then exchanges the whole sum."
)


def check_source(script: Script) -> Iterable[Hit]:
    """Flag accumulation that never holds back an exchange, and `no_sync` without the forward pass in it."""
    training = script.training
    if not training.wraps or training.framework:
        return
    yield from _useless_blocks(script)
    if script.mentioned("no_sync") or _toggled(script):
        return
    told: set[ast.AST] = set()
    for accumulation in script.accumulations.all:
        backward = accumulation.backward
        if backward not in told and _through_wrapper(script, accumulation.loop):
            told.add(backward)
            yield Hit(
                message=f"{script.at(backward)} exchanges gradients over all ranks at each micro-batch, although "
                f"{script.at(accumulation.step)} steps only after several of them.",
                hint=_HINT,
                where=(script.location(backward),),
            )


def _toggled(script: Script) -> bool:
    return any("require_backward_grad_sync" in t.attributes for t in script.trees) or any(
        "require_backward_grad_sync" in t.constants for t in script.trees
    )


def _through_wrapper(script: Script, loop: ast.AST) -> bool:
    """Whether a forward pass of a wrapped model is written in the loop, or in a function called from it."""
    calls = [
        c
        for tree in script.trees
        for c in tree.calls
        if isinstance(c.func, ast.Name | ast.Attribute | ast.Subscript) and script.training.wrapped(c.func)
    ]
    return bool(calls) and bool(script.updates.entries(loop, calls))


def _useless_blocks(script: Script) -> Iterable[Hit]:
    for tree in script.trees:
        for block in tree.withs:
            if not any(_is_no_sync(script, i.context_expr) for i in block.items):
                continue
            inside = [b for b in script.training.backwards if any(tree.inside(b, s) for s in block.body)]
            for backward in inside:
                forwards = [
                    c
                    for c in script.updates.forwards(backward)
                    if isinstance(c.func, ast.Name | ast.Attribute) and script.training.wrapped(c.func)
                ]
                beside = [
                    f for f in forwards if tree.function(f) is tree.function(block) and f in tree.parent
                ]
                if beside and len(beside) == len(forwards) and all(start(f) < start(block) for f in beside):
                    yield Hit(
                        message=f"{script.at(block)} keeps {script.at(backward)} in `no_sync()`, but the forward pass "
                        f"in {script.at(beside[0])} ran before it. DDP decides there whether to exchange gradients, "
                        "so this block changes nothing.",
                        hint="Put the forward pass into the `no_sync()` block, together with `backward`.",
                        where=(script.location(block),),
                    )


def _is_no_sync(script: Script, context: ast.expr) -> bool:
    return any(
        isinstance(o, ast.Call) and isinstance(o.func, ast.Attribute) and o.func.attr == "no_sync"
        for o in script.values.origins(context)
    )


def _cleared_between(script: Script) -> bool:
    """Two backward passes of one round with `zero_grad` between them: the second begins anew, as in SAM."""
    for tree in script.trees:
        clears = tree.called("zero_grad")
        for loop in tree.loops if clears else ():
            passes = sorted(script.updates.entries(loop, script.training.backwards), key=start)
            for first, second in pairwise(passes):
                if any(start(first) < start(c) < start(second) and tree.inside(c, loop) for c in clears):
                    return True
    return False


def check_run(evidence: Evidence) -> Observation:
    """Flag several exchanging backward passes per step."""
    from statistics import median

    from grader.checks.run.models.replica_comparison import sharded

    active = [r for r in evidence.trace.trainers if any(w.kind == "ddp" for w in r.wraps)]
    if not active or sharded(evidence.trace):
        return not_observable("No model was wrapped in DDP.")
    if any(len({s.optimizer for s in r.steps}) > 1 for r in active):
        return not_observable("Several optimizers take turns, so backward passes can't be told apart.")
    told = [[s for s in r.steps if s.backwards is not None and s.synced is not None] for r in active]
    if not all(told):
        return not_observable("No backward pass through DDP was seen before a step.")
    passes = min(median(s.backwards or 0 for s in steps) for steps in told)
    if passes < 2:
        return verified("Each step follows one backward pass, so every exchange is needed.")
    if any(s.unsynced for steps in told for s in steps):
        return verified(f"Of the {passes:g} backward passes per step only the last exchanged gradients.")
    if _cleared_between(evidence.script):
        return verified(
            "Gradients are cleared between the backward passes of a step, so none are accumulated."
        )
    site = first_known([s.site for r in active for s in r.steps])
    entered = any(r.events("no_sync") for r in active)
    why = " `no_sync()` was entered, but after the forward pass, which is too late." if entered else ""
    return flagged(
        Hit(
            message=f"{ranks(r.rank for r in active)} ran {passes:g} backward passes for each step in "
            f"{at(site, 'the training loop')}, and every one of them exchanged gradients "
            f"({count(sum(s.backwards or 0 for s in told[0]), 'exchange')} for "
            f"{count(len(told[0]), 'step')}).{why}",
            hint=_HINT,
            where=place(site),
            ranks=tuple(r.rank for r in active),
            details={"backwards_per_step": passes, "steps": len(told[0])},
        )
    )
