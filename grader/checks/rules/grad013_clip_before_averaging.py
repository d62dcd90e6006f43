"""Gradients are clipped before they are averaged, or after they were stepped with.

## What it finds
Clipping that comes before a hand-written average of gradients, inside a `no_sync()` block, in a hook of a parameter, or
at every micro-batch of an accumulation whose gradients are exchanged only at the last one. And clipping below the step
of gradients that are cleared before the next one.

## Why it matters
The limit is meant for the gradient that is stepped on. Each rank's own gradient is longer and points elsewhere: clipped
first and averaged then, ranks with a large loss lose their weight, and the result is neither in the right direction nor
of the length that was asked for. Clipped after the step they limit nothing.

## Example
```python
import torch
import torch.distributed as dist

for images, labels in train_loader:
    optimizer.zero_grad()
    loss_of(model(images), labels).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    for p in model.parameters():
        dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size()
    optimizer.step()
```

## Use instead
```python
import torch
import torch.distributed as dist

for images, labels in train_loader:
    optimizer.zero_grad()
    loss_of(model(images), labels).backward()
    for p in model.parameters():
        dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
```

## How it is seen
In the source, by the order of clip and collective in one round of the training loop, and by what stands around the
clip; by norms of the parts that `to_local()` gives and no collective adds up; and by functions that clip and are handed
to `register_hook` of parameters, which DDP and FSDP average after their hooks have run (a hint). The run can't tell:
the gradients that are stepped on are equal on all ranks either way.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.rule import Hit
from grader.checks.source.gradients.average_fixes import clip_later
from grader.checks.source.gradients.clipping import after_backward, clipping_hooks, step_above
from grader.checks.source.gradients.sharded_gradients import OwnNorm, norms_of_own_parts
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import ancestors, start
from grader.model.finding import Severity

SEVERITY = Severity.WARNING
_AFTER = (
    "Clip what the step uses: leave the hook out, and between `backward()` and `step()` call "
    "`torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)`, or `clip_grad_value_` for single values."
)


def check_source(script: Script) -> Iterable[Hit]:
    """Flag clips of gradients that are not yet averaged."""
    if script.training.framework:
        return
    for clip in script.updates.clips:
        hit = (
            _after_the_step(script, clip)
            or _before_average(script, clip)
            or _inside_no_sync(script, clip)
            or _each_micro_batch(script, clip)
            or _of_one_shard(script, clip)
        )
        if hit is not None:
            yield hit
    for own in norms_of_own_parts(script):
        yield _by_own_norm(script, own)
    for call in clipping_hooks(script):
        yield Hit(
            message=f"{script.at(call)} clips in a hook of each parameter, {script.quote(call)}. It runs as soon as "
            "this rank has its own gradient, before those of all ranks are averaged: the limit is put on what no "
            "step uses, and the mean over ranks is neither as long as asked for nor in its direction.",
            hint=after_backward(script, call) or _AFTER,
            where=(script.location(call),),
            severity=Severity.HINT,
        )


def _by_own_norm(script: Script, own: OwnNorm) -> Hit:
    return Hit(
        message=f"{script.at(own.scale)} scales the gradients by a norm of the parts that this rank holds, "
        f"{script.quote(own.norm)} at {script.at(own.norm)}, and {script.at(own.sharded)} has sharded them: each rank "
        "scales its part of one and the same gradient by another factor.",
        hint="Let torch take the norm of all ranks, `torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)`, or "
        "add up the squares of all ranks with `dist.all_reduce` before the root is taken.",
        where=(script.location(own.norm), script.location(own.scale)),
    )


def _after_the_step(script: Script, clip: ast.Call) -> Hit | None:
    step = step_above(script, clip)
    if step is None:
        return None
    return Hit(
        message=f"{script.at(clip)} clips the gradients that {script.at(step)} has stepped with already, and they are "
        "cleared before the next step: the limit has no effect.",
        hint=f"Clip between `backward()` and the step: put {script.quote(clip)} above {script.at(step)}.",
        where=(script.location(clip), script.location(step)),
    )


def _before_average(script: Script, clip: ast.Call) -> Hit | None:
    for average in script.averaging.all:
        order = script.averaging.order(average)
        if order is None or len(order.steps) != 1:
            continue
        clips = [c for c in script.updates.entries(order.around, [clip]) if c is not order.average]
        if not clips or any(script.names.tree(order.around).inside(c, order.average) for c in clips):
            continue
        if all(start(c) < start(order.average) < start(order.steps[0]) for c in clips):
            later = [c for c in script.updates.clips if c is not clip]
            if any(
                start(e) > start(order.average)
                for c in later
                for e in script.updates.entries(order.around, [c])
            ):
                continue
            hint, fix = clip_later(script, clips[0], order)
            return Hit(
                message=f"{script.at(clip)} clips each rank's own gradients, and {script.at(average.call)} averages "
                "them afterwards: the step is neither the clipped mean nor in its direction.",
                hint=hint,
                where=(script.location(clip),),
                fix=fix,
            )
    return None


def _of_one_shard(script: Script, clip: ast.Call) -> Hit | None:
    """Torch's own clip by norm over the parameters of an FSDP module, of which each rank holds a part."""
    given = clip.args[0] if clip.args else None
    func = given.func if isinstance(given, ast.Call) else None
    if (
        (script.names.qualified(clip.func) or "") != "torch.nn.utils.clip_grad_norm_"
        or not isinstance(func, ast.Attribute)
        or func.attr != "parameters"
    ):
        return None
    wraps = [o for o in script.values.origins(func.value) if isinstance(o, ast.Call)]
    sharded = [
        w for w in wraps if (script.names.qualified(w.func) or "").endswith(".FullyShardedDataParallel")
    ]
    if not sharded or len(sharded) < len(script.values.origins(func.value)):
        return None
    if any(k.arg in (None, "sharding_strategy") for w in sharded for k in w.keywords):
        return None  # not every strategy shards
    return Hit(
        message=f"{script.at(clip)} clips by the norm of the gradients that this rank holds, and "
        f"{script.at(sharded[0])} has sharded them: each rank scales its part of one and the same gradient by another "
        "factor.",
        hint=f"Let the wrapper clip, `{ast.unparse(func.value)}.clip_grad_norm_(…)`: it takes the norm over all ranks.",
        where=(script.location(clip),),
    )


def _inside_no_sync(script: Script, clip: ast.Call) -> Hit | None:
    tree = script.names.tree(clip)
    for above in ancestors(tree.parent, clip, tree.function(clip)):
        if isinstance(above, ast.With):
            for item in above.items:
                call = item.context_expr
                if (
                    isinstance(call, ast.Call)
                    and isinstance(call.func, ast.Attribute)
                    and call.func.attr == "no_sync"
                ):
                    return Hit(
                        message=f"{script.at(clip)} clips inside the `no_sync()` block of {script.at(above)}: these "
                        "are gradients of this rank alone, which are averaged later.",
                        hint="Clip once per step, after the backward pass that exchanges gradients.",
                        where=(script.location(clip),),
                    )
    return None


def _each_micro_batch(script: Script, clip: ast.Call) -> Hit | None:
    held = script.mentioned("no_sync")
    tree = script.names.tree(clip)
    for accumulation in script.accumulations.all:
        loop, guard, step = accumulation.loop, accumulation.guard, accumulation.step
        if not tree.inside(clip, loop) or (guard is not None and tree.inside(clip, guard)):
            continue
        if not script.updates.entries(loop, held):
            continue
        above = tree.parent.get(clip)
        while above is not None and not isinstance(above, ast.If | ast.IfExp) and above is not loop:
            above = tree.parent.get(above)
        # To what stands behind an early `continue`, only some of the rounds come.
        if guard is None:
            behind = any(tree.inside(e, loop) and start(e) < start(clip) for e in tree.exits)
        else:
            behind = not tree.inside(step, guard) and start(clip) > start(guard)
        if above is loop and not behind and start(clip) < start(step):
            return Hit(
                message=f"{script.at(clip)} clips at every micro-batch, but under `no_sync()` only the last one before "
                f"{script.at(step)} has exchanged gradients: the others are clipped rank by rank.",
                hint="Clip once per step, right before `optimizer.step()`"
                + (", under the same condition." if guard is not None else f" at {script.at(step)}."),
                where=(script.location(clip),),
            )
    return None
