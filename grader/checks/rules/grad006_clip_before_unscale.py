"""Gradients are not cleared or cleared too early, or clipped while they are still scaled.

## What it finds
A training loop that steps without ever clearing gradients, clears those of some layers alone, or clears them between
`backward` and the step; and clipping before a scaled loss's gradients are brought back to their own size, by a
`GradScaler`'s `unscale_(optimizer)` or by hand.

## Why it matters
`backward` adds to what is there. Gradients that nobody clears are sums over the whole run, so each step goes where all
batches so far pointed, and training falls apart or crawls. Where they are cleared before the step, it finds nothing:
the loss stays where it was. Scaled gradients are tens of thousands of times too large: clipped to a norm of 1, every
batch gets the same tiny step, whatever its loss said.

## Example
```python
import torch
import torch.distributed as dist

dist.init_process_group("nccl")
scaler = torch.amp.GradScaler("cuda")
for images, labels in train_loader:
    with torch.autocast("cuda"):
        loss = torch.nn.functional.cross_entropy(model(images), labels)
    scaler.scale(loss).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
```

## Use instead
```python
import torch
import torch.distributed as dist

dist.init_process_group("nccl")
scaler = torch.amp.GradScaler("cuda")
for images, labels in train_loader:
    optimizer.zero_grad()
    with torch.autocast("cuda"):
        loss = torch.nn.functional.cross_entropy(model(images), labels)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
```

## How it is seen
In the source: a loop with `backward` and an optimizer's step, and nothing in it or in the functions it calls that
clears gradients, nor a hook or handler that does (gradients that the script assigns itself are left to the run);
`zero_grad` before a step of a loop, with no backward pass between the two; a clip between a scaled `backward` and the
step with no `unscale_` before it, or, where the script multiplies the loss and divides the gradients itself, before
that division. In the run: such a loss goes backward multiplied; after some steps the next backward passes find
gradients that were just stepped on, all of them or, which is a warning, those of some layers; or backward passes gave
gradients, and the step found none. Any way to clear them counts, at any place of the loop.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from grader.checks.phrases import count
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.checks.source.calls.arguments import called_on
from grader.checks.source.calls.uncalled_methods import parentheses, uncalled
from grader.checks.source.causes import lines
from grader.checks.source.gradients.cleared_gradients import steps_on_cleared
from grader.checks.source.gradients.clipping import scaled_clips
from grader.checks.source.script import Script
from grader.checks.source.syntax.edits import Edits
from grader.checks.source.syntax.nodes import Loop, ancestors, start
from grader.model.finding import Severity
from grader.model.fix import Fix

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence

SEVERITY = Severity.WARNING
_SCALED = 2.0
"""What multiplies a loss by less hardly makes a limit bite that didn't before."""

_SCALERS = (
    "torch.amp.GradScaler", "torch.cuda.amp.GradScaler", "torch.GradScaler", "torch.amp.grad_scaler.GradScaler",
    "torch.cuda.amp.grad_scaler.GradScaler", "torch.distributed.fsdp.sharded_grad_scaler.ShardedGradScaler",
)  # fmt: skip


def check_source(script: Script) -> Iterable[Hit]:
    """Flag loops that never clear gradients or clear them too early, and clips of scaled gradients."""
    for found in steps_on_cleared(script):
        yield Hit(
            message=f"{found.says} No step learns anything from its batch.",
            hint=found.hint,
            where=(script.location(found.clear), script.location(found.step)),
            severity=Severity.ERROR,
            fix=found.fix,
        )
    if not script.mentions_distributed:
        return  # a single process is not what is judged here
    yield from _never_cleared(script)
    yield from _clipped_scaled(script)
    yield from _clipped_past_framework(script)
    yield from _clipped_scaled_by_hand(script)


def _never_cleared(script: Script) -> Iterable[Hit]:
    updates = script.updates
    for backward in script.training.backwards:
        if (script.names.qualified(backward.func) or "").startswith("torch.distributed."):
            continue  # gradients of a distributed context of their own
        loops = updates.rounds(backward, updates.steps)
        if not loops or any(_may_clear(script, loop) for loop in loops):
            continue
        step = updates.entries(loops[0], updates.steps)[0]
        named = uncalled(script, "zero_grad")
        yield Hit(
            message=f"{script.at(backward)} adds its gradients to those of all steps before: nothing in the loop of "
            f"{script.at(loops[0])}, which steps in {script.at(step)}, ever clears them. Each step goes where the sum "
            "of all batches so far points.",
            hint=parentheses(script, named[0])
            if named
            else "Call `optimizer.zero_grad()` once per step, before `backward` or right after `optimizer.step()`.",
            where=tuple(script.location(n) for n in (*named[:1], backward)),
            severity=Severity.ERROR,
            fix=None if named else _clearing(script),
        )


def _clearing(script: Script) -> Fix | None:
    """Gradients cleared right after the one step of the script."""
    edits, steps = Edits(script), script.updates.steps
    optimizer = script.updates.stepped(steps[0]) if len(steps) == 1 else None
    statement = script.names.tree(steps[0]).statement(steps[0]) if optimizer is not None else None
    if (
        optimizer is None
        or not isinstance(statement, ast.Expr)
        or not isinstance(optimizer, ast.Name | ast.Attribute)
    ):
        return None
    edits.after(statement, f"{ast.unparse(optimizer)}.zero_grad()")
    return edits.fix("Clears the gradients after each step.")


def _may_clear(script: Script, loop: Loop) -> bool:
    updates = script.updates
    if updates.entries(loop, updates.clears) or updates.hands_on_optimizer(loop):
        return True
    # Gradients that are assigned don't add up, or are views of a tensor that may be emptied as a whole.
    assigned = any(script.may_run(node) for node in updates.assigned)
    return assigned or any(_is_handed_on(script, clear) for clear in updates.clears)


def _is_handed_on(script: Script, clear: ast.AST) -> bool:
    """Whether gradients are cleared by what a hook, a handler or another call may run in each step."""
    tree = script.names.tree(clear)
    function, above = tree.function(clear), tree.parent.get(clear)
    if isinstance(clear, ast.Attribute) and not (isinstance(above, ast.Call) and above.func is clear):
        return True
    in_lambda = any(isinstance(node, ast.Lambda) for node in ancestors(tree.parent, clear))
    return in_lambda or (function is not None and bool(script.graph.references(function)))


def _clipped_scaled(script: Script) -> Iterable[Hit]:
    scalers = [c for c in script.calls(*_SCALERS) if not _switched_off(script, c)]
    unscales = script.called("unscale_")
    if not scalers:
        return
    for clip in script.updates.clips:
        tree = script.names.tree(clip)
        function = tree.function(clip)
        beside = [c for c in tree.calls_within(function or tree.root) if tree.function(c) is function]
        scaled = [b for b in script.training.backwards if b in beside and _is_scaled(script, b)]
        before = [b for b in scaled if start(b) < start(clip) and script.updates.together(b, clip)]
        if not before or script.updates.running(unscales) & _called(script, beside):
            continue
        if any(u in beside and start(u) < start(clip) for u in unscales):
            continue
        late = next((u for u in unscales if u in beside), None)
        order = f", and {script.at(late)} unscales them too late" if late is not None else ""
        yield Hit(
            message=f"{script.at(clip)} clips gradients that {script.at(before[-1])} made from a scaled loss{order}. "
            "They are about 65,536 times too large at that point, so the limit cuts every batch down to the same "
            "tiny step.",
            hint="Call `scaler.unscale_(optimizer)` after `backward` and before the clip; `scaler.step` then knows "
            "that it was done.",
            where=(script.location(clip),),
            fix=_unscaling(script, clip, before[-1], late),
        )


def _clipped_past_framework(script: Script) -> Iterable[Hit]:
    """Torch's clip where a framework scales the loss for float16 and unscales in a clip of its own alone."""
    words = script.frameworks.words
    if words is None or not script.frameworks.scales_loss() or script.mentioned("unscale_gradients"):
        return
    scaled = script.frameworks.calls("backward")
    for clip in script.updates.clips:
        tree = script.names.tree(clip)
        name = script.names.qualified(clip.func) or ""
        beside = [b for b in scaled if tree.function(b) is tree.function(clip) and start(b) < start(clip)]
        if name.startswith("torch.nn.utils.") and beside:
            yield Hit(
                message=f"{script.at(clip)} clips gradients that {script.at(beside[-1])} made from a loss which "
                f"{words.name} scales for float16. They are about 65,536 times too large at that point, so the limit "
                "cuts every batch down to the same tiny step.",
                hint=f"Clip with `{words.called}.{words.clip}(…)`, which unscales first.",
                where=(script.location(clip),),
            )


def _clipped_scaled_by_hand(script: Script) -> Iterable[Hit]:
    for found in scaled_clips(script):
        clip, late, scale = found.clip, found.unscaled, script.quote(found.scale)
        yield Hit(
            message=f"{script.at(clip)} clips gradients that {script.at(found.backward)} made from a loss times "
            f"{scale}, and {script.at(late)} divides them by it too late: they are as many times too large at that "
            "point, so the limit cuts every batch down to the same tiny step.",
            hint=f"Divide the gradients by {scale} right after `backward`, above {script.quote(clip)} at "
            f"{script.at(clip)}.",
            where=lines(script, [clip, late]),
        )


def _unscaling(script: Script, clip: ast.Call, backward: ast.Call, late: ast.Call | None) -> Fix | None:
    """`scaler.unscale_(optimizer)` before a clip, and no longer after it."""
    tree, edits = script.names.tree(clip), Edits(script)
    value = called_on(backward) or backward
    scaled = [o.func.value for o in script.values.origins(value)
              if isinstance(o, ast.Call) and isinstance(o.func, ast.Attribute) and o.func.attr == "scale"]  # fmt: skip
    beside = [s for s in script.updates.steps if tree.function(s) is tree.function(clip)]
    optimizer = script.updates.stepped(beside[0]) if len(beside) == 1 else None
    if len(scaled) != 1 or optimizer is None:
        return None
    edits.before(tree.statement(clip), f"{ast.unparse(scaled[0])}.unscale_({ast.unparse(optimizer)})")
    if late is not None:
        edits.remove(tree.statement(late))
    return edits.fix("Brings the gradients back to their own scale before they are clipped.")


def _called(script: Script, calls: list[ast.Call]) -> frozenset[ast.AST]:
    return frozenset(t for c in calls for t in script.graph.targets(c))


def _switched_off(script: Script, scaler: ast.Call) -> bool:
    return script.values.constant(script.argument(scaler, "enabled")) is False


def _is_scaled(script: Script, backward: ast.Call) -> bool:
    """`scaler.scale(loss).backward()`, with the product under a name or not."""
    value = called_on(backward) or backward
    return any(
        isinstance(o, ast.Call) and isinstance(o.func, ast.Attribute) and o.func.attr == "scale"
        for o in script.values.origins(value)
    )


def check_run(evidence: Evidence) -> Observation:
    """Flag steps that found nothing, and those after which no backward pass began with cleared gradients."""
    from grader.checks.run.gradients.gradient_clearing import cleared_early, never_cleared, stepped_on_nothing

    bare = stepped_on_nothing(evidence)
    if bare:
        return flagged(cleared_early(evidence.script, bare))
    passed = [(r, s) for r in evidence.trace.trainers for s in r.steps if s.empty or s.kept]
    if not passed and (clipped := _seen_scaled(evidence)) is not None:
        return clipped
    if not passed:
        return not_observable(
            "No gradient was seen that was stepped on and that a later backward pass could find."
        )
    kept = [(r, s) for r, s in passed if s.kept]
    if len(kept) < max(3, len(passed) // 2):
        clipped = _seen_scaled(evidence)
        if clipped is not None:
            return clipped
        return verified(
            f"Gradients were cleared before the next step, wherever it was looked at ({count(len(passed), 'time')})."
        )
    return flagged(never_cleared(evidence.script, kept))


def _seen_scaled(evidence: Evidence) -> Observation | None:
    """What a run says of clips that the text finds ahead of their scale's division; None where it says nothing."""
    from grader.checks.run.gradients.loss_origins import loss_origin

    hit = next(iter(_clipped_scaled_by_hand(evidence.script)), None)
    made = loss_origin(evidence.trace) if hit is not None else None
    if hit is None or made is None or made.factor < _SCALED:
        return None
    seen = f" The loss went backward as {made.factor:,.6g} times the {made.reduction or 'value'} of `{made.function}`."
    return flagged(replace(hit, message=hit.message + seen, details={"factor": made.factor}))
