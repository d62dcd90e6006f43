"""Training goes around the DDP wrapper.

## What it finds
Training forward passes of the inner module, `model.module(x)`, a name given to `model.module`, or the name the model
had before it was wrapped, while the wrapper stands by; and `functional_call(model.module, …)`.

## Why it matters
DDP prepares each backward pass in the wrapper's own `forward`. A forward pass of the inner module leaves the wrapper
out, so gradients are not averaged and every rank trains a model of its own, silently.

## Example
```python
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(build_model())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for images, labels in train_loader:
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model.module(images), labels)
    loss.backward()
    optimizer.step()
dist.destroy_process_group()
```

## Use instead
```python
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(build_model())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for images, labels in train_loader:
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
dist.destroy_process_group()
```

## How it is seen
In the run, by forward passes of the inner module in training mode that did not come through the wrapper, together with
gradients that differ among ranks. In the source, by a call of `.module(…)`, of a name that holds it, or of the model's
old name, or of `functional_call` with that module, whose result is trained on; and by a method of the inner module that
is called on a wrapper whose `__getattr__` looks into that module, and runs a forward pass there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING

from grader.checks.phrases import at, count, place, places, ranks, told_once
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.checks.source.causes import lines, stands_at
from grader.checks.source.models.bare_models import bare_returns, wrapper_around
from grader.checks.source.models.forwarding_wrappers import around_the_wrapper, forwarded_calls
from grader.checks.source.models.functional_passes import THROUGH_THE_WRAPPER, functional_passes, goes_around
from grader.checks.source.models.handed_before_wrap import handed_before_wrap
from grader.checks.source.ranks.written_ranks import held_name
from grader.checks.source.script import Script
from grader.checks.source.syntax.edits import Edits
from grader.checks.source.syntax.nodes import start
from grader.model.finding import Severity
from grader.model.fix import Fix
from grader.model.precondition import Precondition

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence

SEVERITY = Severity.ERROR
NEEDS = Precondition.GROUP
_ONLY_THROUGH = (
    "DDP averages gradients only for passes through the wrapper: every rank trains a model of its own."
)
_WRAPPERS = ("ddp", "fabric", "accelerate")


def check_source(script: Script) -> Iterable[Hit]:
    """Flag forward passes of the inner module whose result is trained on while the wrapper is never called for it."""
    training = script.training
    if not training.framework:
        for through in forwarded_calls(script):
            says, hint = around_the_wrapper(script, through)
            where = (script.location(through.call), script.location(through.forwarding))
            yield Hit(f"{says} {_ONLY_THROUGH}", hint, where)
    if not training.wraps or training.framework:
        return
    inner = {o for w in training.wraps for o in script.replicas.inner(w)}
    found: list[ast.Call] = []
    for backward in training.backwards:
        trained: list[ast.AST] = [backward.func.value] if isinstance(backward.func, ast.Attribute) else []
        calls = [
            n
            for part in (*trained, *backward.args)
            for n in script.values.closure(part)
            if isinstance(n, ast.Call)
        ]
        if not any(_through_wrapper(script, c) for c in calls):
            found += [c for c in calls if _goes_around(script, c, inner) and not training.gradients_off(c)]
    unique = sorted(set(found), key=lambda c: (script.location(c).path, start(c)))
    if unique:
        first = unique[0]
        yield Hit(
            message=f"{script.at(first)} trains on {script.quote(first)}, a forward pass of the inner module. "
            + _ONLY_THROUGH,
            hint=_through(script, first),
            where=tuple(script.location(c) for c in unique),
            fix=_fix(script, unique),
        )


def _fix(script: Script, calls: list[ast.Call]) -> Fix | None:
    """`model(x)` for `model.module(x)`, and the wrapper's name for that of the model inside it."""
    edits = Edits(script)
    for call in calls:
        func = call.func
        if isinstance(func, ast.Attribute) and func.attr == "module":
            edits.replace(func, ast.unparse(func.value))
        else:
            kinds = [d.kind for d in script.names.lookup(func.id, func)] if isinstance(func, ast.Name) else []
            wrapper = _wrapper_of(script, func) if kinds == ["assign"] and isinstance(func, ast.Name) else ""
            edits.replace(func, wrapper) if wrapper else edits.give_up()
    return edits.fix("Calls the wrapper, which averages the gradients.")


def _through(script: Script, call: ast.Call) -> str:
    """What to write in the place of the first call that goes around the wrapper."""
    func = call.func
    wrapper = ""
    if goes_around(script, call):
        return THROUGH_THE_WRAPPER
    if isinstance(func, ast.Attribute) and func.attr == "module":
        wrapper = ast.unparse(func.value)
    elif isinstance(func, ast.Name):
        wrapper = _wrapper_of(script, func)
    if wrapper in ("", ast.unparse(func)):
        return (
            "Call the wrapper in training: `model(x)`. The inner `model.module` is for evaluation and saving."
        )
    return (
        f"Call the wrapper in training: write `{wrapper}(…)` instead of `{ast.unparse(func)}(…)` at {script.at(call)}. "
        f"The inner `{wrapper}.module` is for evaluation and saving."
    )


def _wrapper_of(script: Script, name: ast.Name) -> str:
    """What the one wrap of a model is called where the model itself is called."""
    wrapper = wrapper_around(script, name)
    if wrapper is not None:
        around = [w for w in script.training.wraps if w in script.values.origins(wrapper)]
    else:
        made = set(script.values.origins(name, returns=False))
        around = [w for w in script.training.wraps if made & script.replicas.inner(w)]
    return held_name(script, around[0], name) if len(around) == 1 else ""


def _through_wrapper(script: Script, call: ast.Call) -> bool:
    """`ddp(x)`, and `ddp.forward(x)`, which synchronises as well."""
    func = call.func
    if isinstance(func, ast.Attribute) and func.attr == "forward":
        func = func.value
    through = isinstance(func, ast.Name | ast.Attribute | ast.Subscript | ast.BoolOp)
    return through and script.training.wrapped(func) and wrapper_around(script, func) is None


def _goes_around(script: Script, call: ast.Call, inner: set[ast.AST]) -> bool:
    """`ddp.module(x)`, `ddp.module.loss(x)`, the same by a name, or the model's name from before it was wrapped."""
    func = call.func
    if goes_around(script, call):
        return not script.averaging.all
    if isinstance(func, ast.Attribute) and func.attr in (
        "parameters",
        "named_parameters",
        "state_dict",
        "buffers",
    ):
        return False
    part: ast.AST = func
    while isinstance(part, ast.Attribute):
        if part.attr == "module":
            return script.training.wrapped(part.value)
        if wrapper_around(script, part) is not None:
            return True
        part = part.value
    if wrapper_around(script, part) is not None:
        return True
    if isinstance(func, ast.Attribute) and func.attr == "forward":
        func = func.value
    is_variable = isinstance(func, ast.Name | ast.Attribute) and script.names.qualified(func) is None
    old = is_variable and any(o in inner for o in script.values.origins(func, returns=False))
    return old and not _before_the_wrap(script, call)


def _before_the_wrap(script: Script, call: ast.Call) -> bool:
    """A pass that is over when the model is wrapped: a trial of the network, whose gradients nobody averages."""
    tree = script.names.tree(call)
    wraps = [w for w in script.training.wraps if tree.function(w) is tree.function(call)]
    return bool(wraps) and all(
        start(call) < start(w) and not any(tree.inside(w, loop) for loop in script.updates.loops_around(call))
        for w in wraps
    )


def check_run(evidence: Evidence) -> Observation:
    """Flag inner forward passes in training, where they left gradients different."""
    from grader.checks.run.models.replica_comparison import compare_gradients, sharded

    wraps = [w for r in evidence.trace.ranks for w in r.wraps if w.kind in _WRAPPERS]
    if not wraps or sharded(evidence.trace):
        return not_observable("No model was wrapped in DDP.")
    bypasses = [(r.rank, e) for r in evidence.trace.ranks for e in r.events("bypass")]
    found = compare_gradients(evidence.trace)
    if not bypasses:
        if len(evidence.trace.trainers) < 2:
            return not_observable("No optimizer step was seen on two ranks.")
        return verified("Every training forward pass went through the wrapper.")
    if found.num_steps and found.difference is None:
        return verified(
            "The inner module was called in training, yet gradients were equal "
            f"at all {count(found.num_steps, 'step')} compared."
        )
    if not found.num_steps:
        return not_observable(
            "The inner module was called in training, but no step was seen to compare gradients at."
        )
    first = bypasses[0][1]
    wrap = wraps[0]
    script = evidence.script
    bare = next(iter(bare_returns(script)), None)
    hint, fix = (
        "Call the wrapped model, `model(x)`, in training; `model.module` is for saving and attributes.",
        None,
    )
    if bare is not None:
        hint, fix = f"Give the wrapper back at {script.at(bare[0])}: `return {bare[1]}`.", bare[2]
    early = handed_before_wrap(script, first.site) if bare is None else None
    if early is not None:
        hint = early[1]
    how = (
        f"{at(first.site, 'the training loop')} calls it, not the wrapper made at {at(wrap.site, 'the wrap')}."
        + ("" if early is None else f" {script.at(early[0])} handed it on before it was wrapped.")
    )
    led: tuple[ast.AST, ...] = tuple(one[0] for one in (bare, early) if one is not None)
    given = next(iter(functional_passes(script)), None) if not led else None
    if given is not None:
        how += f" {script.at(given)} gives `functional_call` the module inside: {script.quote(given)}."
        hint, led = THROUGH_THE_WRAPPER, (given,)
    through = next(forwarded_calls(script), None) if not led else None
    if through is not None and stands_at(script, through.inner, first.site):
        how, hint = around_the_wrapper(script, through)
        led = (through.call, through.forwarding)
    concerned = tuple(sorted({rank for rank, _ in bypasses}))
    step = found.difference.step if found.difference else found.first
    return flagged(
        Hit(
            message=(
                f"{ranks(concerned)} trained through the inner module: {how} Gradients differ among ranks "
                f"from step {step} on ({found.num_different:,} of {count(found.num_steps, 'compared step')}), "
                "so each rank trains a model of its own."
            ),
            hint=hint,
            fix=fix,
            where=told_once((*lines(script, led), *places(e.site for _, e in bypasses), *place(wrap.site))),
            ranks=concerned,
            details={
                "bypasses": len(bypasses),
                "first_different_step": step,
                "steps_compared": found.num_steps,
                "steps_different": found.num_different,
            },
        )
    )
