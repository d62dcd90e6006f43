"""The optimizer steps over parameters that nobody trains, or leaves some of them out.

## What it finds
An optimizer built from a copy of the model, from the model before it was built anew, or before `FSDP` replaced its
parameters, while training runs through another one. And parameters that get gradients at every step and that no
optimizer holds: a second group that was left out, a layer that was added later.

## Why it matters
`step()` moves the parameters that the optimizer was given, and no others. If they belong to a copy, they never get a
gradient, the step does nothing, and the model that is trained on all ranks stays as it was. Nothing fails. The same
holds for each parameter that a filter left out: its gradients are computed, averaged over the ranks, and thrown away.

## Example
```python
import copy

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
model = build_model()
optimizer = torch.optim.SGD(copy.deepcopy(model).parameters(), lr=0.1)
for images, labels in train_loader:
    optimizer.zero_grad()
    loss_of(model(images), labels).backward()
    optimizer.step()
```

## Use instead
```python
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
model = build_model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for images, labels in train_loader:
    optimizer.zero_grad()
    loss_of(model(images), labels).backward()
    optimizer.step()
```

## How it is seen
In the run: no parameter of any optimizer had a gradient at any step looked at, although backward passes ran; or some
had gradients, no optimizer was given them, and they ended as they began. Where these are whole layers and weights were
loaded from a file, they may be meant to stay as they are, which is a hint only. In the source: the model behind
`.parameters()` is followed to where it was made, and so is the one that is called in training. Before or after
`.to()`, `torch.compile` and DDP the parameters are the same ones, so that order is free.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING

from grader.checks.phrases import at, count, first_known, listed, place, ranks
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.checks.source.causes import lines
from grader.checks.source.script import Script
from grader.checks.source.syntax.edits import Edits
from grader.checks.source.syntax.nodes import name_of, start
from grader.checks.source.training_loops import SHARDING
from grader.model.finding import Severity
from grader.model.fix import Fix

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence
    from grader.model.trace import RankTrace, Step

SEVERITY = Severity.ERROR
_HINT = "Build the optimizer from the model that you train: `torch.optim.SGD(model.parameters(), …)`."
_SHARD_FIRST = "Shard the model first and build the optimizer from the result."


def check_source(script: Script) -> Iterable[Hit]:
    """Flag optimizers whose model is none that training calls."""
    if script.training.framework or not script.mentions_distributed:
        return
    if any(t.attributes.get("grad") for t in script.trees):
        return  # gradients that are assigned may well be meant for a copy
    trained = _trained(script)
    for optimizer in script.updates.optimizers:
        owners = _owners(script, optimizer)
        if not owners or not _steps(script, optimizer):
            continue
        sharded = _sharded_later(script, optimizer, owners)
        if sharded is not None:
            yield Hit(
                message=f"{script.at(optimizer)} builds the optimizer, and {script.at(sharded)} then replaces the "
                "model's parameters by shards: the optimizer keeps the old ones, and its steps move nothing.",
                hint=f"Move {script.at(optimizer)}, which builds the optimizer, below {script.at(sharded)}: shard the "
                "model first and build the optimizer from the result.",
                where=(script.location(optimizer),),
            )
            continue
        made = [o for owner in owners for o in script.values.origins(owner, returns=False)]
        if not trained or not made or not all(_is_model(script, o) for o in made):
            continue
        if trained.isdisjoint(made) and not any(_inside(script, o, trained) for o in made):
            called = [t for t in trained if _is_model(script, t)] or list(trained)
            copied = any(name_of(o) in ("deepcopy", "copy") for o in made)
            yield Hit(
                message=f"{script.at(optimizer)} gives the optimizer the parameters of "
                f"{'a copy of the model' if copied else 'another model'}, made in {script.at(made[0])}. Training calls "
                f"the one made in {script.at(min(called, key=start))}, which no step ever moves.",
                hint=_hint(script, optimizer),
                where=(script.location(optimizer),),
                fix=_fix(script, optimizer),
            )


def _wrapper(script: Script, optimizer: ast.Call) -> str:
    """What the one wrapped model is called where an optimizer is built; "" where that is not certain."""
    tree = script.names.tree(optimizer)
    named = {
        name
        for name, made in tree.definitions.get(tree.scope(optimizer), {}).items()
        for one in made
        if one.value in script.training.wraps and one.since <= start(optimizer) and not one.path
    }
    return min(named) if len(named) == 1 else ""


def _hint(script: Script, optimizer: ast.Call) -> str:
    name = _wrapper(script, optimizer)
    if not name:
        return _HINT
    written = f"{Edits(script).text(optimizer.func)}({name}.parameters(), …)"
    return f"Build the optimizer from the model that you train: `{written}` at {script.at(optimizer)}."


def _fix(script: Script, optimizer: ast.Call) -> Fix | None:
    name, owners, edits = _wrapper(script, optimizer), _owners(script, optimizer), Edits(script)
    if not name or len(owners) != 1 or not isinstance(owners[0], ast.Name) or owners[0].id == name:
        return None
    edits.replace(owners[0], name)
    return edits.fix(f"Gives the optimizer the parameters of `{name}`.")


def _owners(script: Script, optimizer: ast.Call) -> list[ast.expr]:
    """Models whose parameters an optimizer is given; empty where it is given anything else besides."""
    given = script.argument(optimizer, "params") or (optimizer.args[0] if optimizer.args else None)
    if given is None:
        return []
    found: list[ast.expr] = []
    for origin in script.values.origins(given):
        func = origin.func if isinstance(origin, ast.Call) else None
        if not isinstance(func, ast.Attribute) or func.attr != "parameters":
            return []
        found.append(func.value)
    return found


def _trained(script: Script) -> set[ast.AST]:
    """Where the models that are called for backward passes were made; empty where one of them can't be followed."""
    found: set[ast.AST] = set()
    for backward in script.training.backwards:
        if script.training.gradients_off(backward):
            continue
        for call in script.updates.forwards(backward):
            func = call.func
            if isinstance(func, ast.Attribute) and func.attr in ("forward", "module"):
                func = func.value
            if not isinstance(func, ast.Name | ast.Attribute | ast.Subscript):
                continue
            if isinstance(func, ast.Attribute):  # a method of a model trains it, too
                found |= {o for o in script.values.origins(func.value, returns=False) if _is_model(script, o)}
            if script.names.qualified(func) is not None or script.graph.targets(call):
                continue
            for origin in script.values.origins(func, returns=False):
                if isinstance(origin, ast.Call):
                    found.add(origin)
                    if origin in script.training.wraps:
                        found |= script.replicas.inner(origin)
                elif origin is not func and not isinstance(func, ast.Attribute):
                    return set()  # a model from who knows where
    return found


def _is_model(script: Script, origin: ast.AST) -> bool:
    if origin in script.training.wraps or script.replicas.builds_model(origin):
        return True
    targets = script.graph.targets(origin) if isinstance(origin, ast.Call) else ()
    return any(
        isinstance(t, ast.FunctionDef) and t.name != "__init__" for t in targets
    )  # a factory of its own


def _inside(script: Script, origin: ast.AST, trained: set[ast.AST]) -> bool:
    """One model is part of the other: built from it, or handed to it."""
    mine = script.values.closure(origin)
    if name_of(origin) == "deepcopy":
        return False
    return bool(mine & trained) or any(origin in script.values.closure(t) for t in trained)


def _steps(script: Script, optimizer: ast.Call) -> bool:
    stepped = [script.updates.stepped(s) for s in script.updates.steps]
    return any(optimizer in script.values.origins(s) for s in stepped if s is not None)


def _sharded_later(script: Script, optimizer: ast.Call, owners: list[ast.expr]) -> ast.Call | None:
    tree = script.names.tree(optimizer)
    made = {
        o for owner in owners for o in script.values.origins(owner, returns=False) if isinstance(o, ast.Call)
    }
    for call in script.calls(*SHARDING):
        module = script.argument(call, "module") or (call.args[0] if call.args else None)
        later = start(call) > start(optimizer) and tree.function(call) is tree.function(optimizer)
        if module is None or not later or call not in tree.parent:
            continue
        if script.values.constant(script.argument(call, "use_orig_params")) is True:
            continue
        if made & set(script.values.origins(module, returns=False)):
            return call
    return None


def check_run(evidence: Evidence) -> Observation:
    """Flag ranks whose optimizers never met a gradient."""
    from grader.checks.run.gradients.gradient_clearing import stepped_on_nothing
    from grader.checks.run.models.unheld_parameters import left_out

    if stepped_on_nothing(evidence):
        return not_observable("Gradients were cleared before the steps, so none was seen at any of them.")
    active = evidence.trace.trainers
    looked = [
        (r, s) for r in active for s in r.steps if s.num_params is not None and s.num_missing is not None
    ]
    if not looked or not any(s.num_params for _, s in looked):
        return not_observable("No step was seen at which the optimizer's gradients could be counted.")
    empty = [r for r in active if all(s.num_missing == s.num_params for o, s in looked if o is r)]
    passes = sum(s.backwards or 0 for r in empty for s in r.steps)
    unheld = next((e for r in active for e in r.events("unheld")), None)
    if (not empty or not passes) and unheld is not None:
        return flagged(left_out(evidence, unheld))
    if not empty or not passes:
        with_gradient = max((s.num_params or 0) - (s.num_missing or 0) for _, s in looked)
        return verified(
            f"The optimizer steps over what was trained: {count(with_gradient, 'tensor')} had gradients."
        )
    return flagged(_of_others(evidence, empty, looked, passes))


def _of_others(
    evidence: Evidence, empty: list[RankTrace], looked: list[tuple[RankTrace, Step]], passes: int
) -> Hit:
    from grader.checks.run.models.parallel_layout import sharding_wraps

    step = next(s for o, s in looked if o is empty[0])
    site = first_known([s.site for r in empty for s in r.steps])
    script = evidence.script
    read = list(check_source(script))
    said = [p for h in read for p in h.where]
    built = script.updates.optimizers
    hint, fix = (_hint(script, built[0]), _fix(script, built[0])) if len(built) == 1 else (_HINT, None)
    said = said or list(lines(script, built))
    why = f" {read[0].message}" if read else ""
    sharded = first_known([w.site for r in empty for w in reversed(sharding_wraps(r))])
    if read:
        hint, fix = read[0].hint, read[0].fix
    elif sharded is not None:
        why = f" {at(sharded)} divides the model into shards, and these are none of them."
        hint, fix = _SHARD_FIRST, None
    return Hit(
        message=f"{ranks(r.rank for r in empty)} stepped {count(len(empty[0].steps), 'time')} over parameters "
        f"without a gradient: none of the {count(step.num_params or 0, 'tensor')} that the optimizer holds "
        f"({listed([f'`{n}`' for n in step.missing], 3) or 'of no known model'}) ever had one, although "
        f"{count(passes, 'backward pass', 'backward passes')} ran. {at(site, 'The step')} moves nothing."
        f"{why}",
        hint=hint,
        fix=fix,
        where=tuple(dict.fromkeys((*said, *place(site), *place(sharded)))),
        ranks=tuple(r.rank for r in empty),
        details={"tensors": step.num_params, "names": list(step.missing), "backward_passes": passes},
    )
