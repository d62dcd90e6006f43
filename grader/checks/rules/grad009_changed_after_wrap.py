"""The model changes after DDP has wrapped it.

## What it finds
Layers replaced or added, adapters put in, `requires_grad` switched, BatchNorm converted, or all numbers converted to
another type, in a model that DDP already holds; and a converted model that is thrown away.

## Why it matters
DDP prepares the parameters that it finds when it wraps. A parameter that comes later is never averaged: each rank
trains its own, and only one is saved. A parameter that is frozen or gone later is waited for in vain: the
second step fails with "Expected to have finished reduction". A parameter whose type changes, as in `net.half()` to save
half of the bytes, gets a new gradient accumulator without DDP's hook, and `net.float()` does not bring that back.

## Example
```python
from torch import nn
from torch.nn.parallel import DistributedDataParallel

model = DistributedDataParallel(build_model())
model.module.head = nn.Linear(64, 10)
for images, labels in train_loader:
    optimizer.zero_grad()
    loss_of(model(images), labels).backward()
    optimizer.step()
```

## Use instead
```python
from torch import nn
from torch.nn.parallel import DistributedDataParallel

net = build_model()
net.head = nn.Linear(64, 10)
model = DistributedDataParallel(net)
for images, labels in train_loader:
    optimizer.zero_grad()
    loss_of(model(images), labels).backward()
    optimizer.step()
```

## How it is seen
In the run: the parameters of the module inside DDP are held against those that it had when it was wrapped. In the
source: an assignment of a layer, a call that inserts adapters, or a change of `requires_grad`, on a wrapped model that
is trained afterwards without being wrapped again. Switching gradients off and on again, as GANs do, is no change.
A conversion of the model's type is read in the source; the run confirms it where ranks then wait in DDP's exchange, or
step with gradients of their own.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING

from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.checks.source.calls.arguments import arguments_of, keyword_value
from grader.checks.source.models.wrapped_model_changes import before_wrap, retyped
from grader.checks.source.script import Script
from grader.checks.source.syntax.tree import Tree
from grader.model.finding import Severity
from grader.model.precondition import Precondition

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence

SEVERITY = Severity.ERROR
NEEDS = Precondition.GROUP

_INSERTING = {"get_peft_model", "inject_adapter_in_model", "inject_adapter", "add_adapter", "LoraModel"}
_ADDING = {"add_module", "register_module", "register_parameter"}
_CONVERT = "torch.nn.SyncBatchNorm.convert_sync_batchnorm"
_EMPTY = {
    "ReLU", "GELU", "SiLU", "Tanh", "Sigmoid", "Softmax", "LogSoftmax", "Dropout", "Dropout1d", "Dropout2d",
    "Flatten", "MaxPool2d", "AvgPool2d", "AdaptiveAvgPool2d", "CrossEntropyLoss", "MSELoss", "NLLLoss", "BCELoss",
    "BCEWithLogitsLoss", "L1Loss",
}  # fmt: skip
_WRAP_FIRST = (
    "Change the model first and wrap it last: `model = DistributedDataParallel(net)` after the change."
)


def check_source(script: Script) -> Iterable[Hit]:
    """Flag changes of a wrapped model that training follows."""
    if not script.training.wraps or script.training.framework or script.replicas.some_ignored:
        return
    yield from _new_layers(script)
    yield from _inserted(script)
    yield from _switched(script)
    yield from _converted(script)
    yield from _retyped(script)


def _retyped(script: Script) -> Iterable[Hit]:
    for cause in retyped(script):
        node = cause.nodes[0]
        yield Hit(f"{script.at(node)} {cause.says}.", cause.hint, (script.location(node),))


def _settled(script: Script, wrap: ast.Call, node: ast.AST) -> bool:
    """Whether a change at this place no longer meets DDP: nobody trains afterwards, or a new wrap follows."""
    replicas = script.replicas
    return not replicas.trained_after(node) or replicas.wrapped_again(node) or not replicas.trained(wrap)


def _new_layers(script: Script) -> Iterable[Hit]:
    for tree in script.trees:
        for definitions in tree.attributes.values():
            for definition in definitions:
                node, value = definition.node, definition.value
                if not isinstance(node, ast.Assign) or value is None or not _is_layer(script, value):
                    continue
                for target in node.targets:
                    if (
                        isinstance(target, ast.Attribute)
                        and target.attr != "module"
                        and not _built(tree, target)
                    ):
                        yield from _replaced(script, target.value, node)
        for load in (n for found in tree.attribute_loads.values() for n in found):
            item = tree.parent[load]
            above = tree.parent[item] if isinstance(item, ast.Subscript) and item.value is load else None
            if isinstance(above, ast.Assign) and item in above.targets and _is_layer(script, above.value):
                yield from _replaced(script, load, above)
    for call in script.called(*_ADDING):
        if isinstance(call.func, ast.Attribute):
            yield from _replaced(script, call.func.value, call)
    for call in script.calls("setattr"):
        if len(call.args) == 3 and _is_layer(script, call.args[2]):
            yield from _replaced(script, call.args[0], call)


def _built(tree: Tree, target: ast.Attribute) -> bool:
    """`self.fc = …` in `__init__`: of an object that is still being made, and that nobody can have wrapped."""
    function = tree.function(target)
    is_self = isinstance(target.value, ast.Name) and target.value.id == "self"
    return is_self and function is not None and function.name == "__init__"


def _replaced(script: Script, owner: ast.expr, node: ast.AST) -> Iterable[Hit]:
    wrap = script.replicas.wrap_of(owner)
    if wrap is None or _settled(script, wrap, node):
        return
    yield Hit(
        message=f"{script.at(node)} puts a layer into the model that DDP has wrapped in {script.at(wrap)}. DDP never "
        "averages the new layer's gradients, so each rank trains its own, and waits in vain for those of a layer that "
        "is gone.",
        hint=before_wrap(script, node, wrap) or _WRAP_FIRST,
        where=(script.location(node),),
    )


def _is_layer(script: Script, value: ast.expr) -> bool:
    for origin in script.values.origins(value, returns=False):
        if not isinstance(origin, ast.Call):
            return False
        name = script.names.qualified(origin.func) or ""
        last = name.rpartition(".")[2]
        if (
            name.startswith("torch.nn.")
            and last[:1].isupper()
            and name.count(".") == 2
            and last not in _EMPTY
        ):
            continue
        owner = script.graph.built_class(origin)
        bases = [script.names.qualified(b) for b in owner.bases] if owner is not None else []
        if "torch.nn.Module" not in bases and "torch.nn.Sequential" not in bases:
            return False
    return bool(script.values.origins(value, returns=False))


def _inserted(script: Script) -> Iterable[Hit]:
    for call in script.called(*_INSERTING):
        if not script.graph.targets(call):
            parts = arguments_of(call)
            if isinstance(call.func, ast.Attribute):
                parts.append(call.func.value)
            for part in parts:
                wrap = script.replicas.wrap_of(part) if isinstance(part, ast.Name | ast.Attribute) else None
                if (
                    wrap is not None
                    and not script.replicas.wrapped_again(call)
                    and script.replicas.trained_after(call)
                ):
                    yield Hit(
                        message=f"{script.at(call)} inserts adapters into the model that DDP has wrapped in "
                        f"{script.at(wrap)}. DDP does not know them, so each rank trains adapters of its own.",
                        hint="Insert the adapters first and wrap the result: "
                        "`DistributedDataParallel(get_peft_model(net, …))`.",
                        where=(script.location(call),),
                    )
                    break


def _switched(script: Script) -> Iterable[Hit]:
    found: list[tuple[ast.AST, ast.Call, object]] = []
    for tree in script.trees:
        for definition in tree.attributes.get("requires_grad", ()):
            targets = getattr(definition.node, "targets", [])
            for target in (t for t in targets if isinstance(t, ast.Attribute)):
                wrap = script.replicas.wrap_of(target.value)
                if wrap is not None:
                    found.append((definition.node, wrap, script.values.constant(definition.value)))
        for call in tree.called("requires_grad_"):
            if isinstance(call.func, ast.Attribute):
                wrap = script.replicas.wrap_of(call.func.value)
                if wrap is not None:
                    value = script.values.constant(call.args[0]) if call.args else True
                    if call.keywords:
                        value = script.values.constant(call.keywords[0].value)
                    found.append((call, wrap, value))
    for node, wrap, value in found:
        both = any(w is wrap and v is not value for _, w, v in found)
        if both or value not in (True, False) or _settled(script, wrap, node):
            continue
        if value is False and script.replicas.whole(node):
            continue  # a teacher: nothing of it is trained, so DDP waits for nothing
        what = (
            "DDP does not average what was frozen when it was wrapped, so each rank trains its own"
            if value
            else "DDP goes on waiting for these gradients, and the second step fails"
        )
        yield Hit(
            message=f"{script.at(node)} switches `requires_grad` in the model that DDP has wrapped in "
            f"{script.at(wrap)}: {what}.",
            hint=before_wrap(script, node, wrap)
            or "Freeze and unfreeze before the wrap, or wrap again after each change.",
            where=(script.location(node),),
        )


def _converted(script: Script) -> Iterable[Hit]:
    for call in script.calls(_CONVERT):
        given = call.args[0] if call.args else keyword_value(call, "module")
        if given is None:
            continue
        wrap = script.replicas.wrap_of(given)
        if wrap is not None and not script.replicas.wrapped_again(call):
            yield Hit(
                message=f"{script.at(call)} converts BatchNorm in a model that DDP has wrapped in {script.at(wrap)}. "
                "The layers are replaced behind DDP's back, and whether it finds the new ones depends on the version.",
                hint="Convert first, then wrap: "
                "`DistributedDataParallel(nn.SyncBatchNorm.convert_sync_batchnorm(net))`.",
                where=(script.location(call),),
                severity=Severity.WARNING,
            )
        elif isinstance(script.names.tree(call).parent.get(call), ast.Expr):
            yield Hit(
                message=f"{script.at(call)} throws the converted model away. Layers inside are replaced in place, but "
                "a model that is itself a BatchNorm layer stays as it was.",
                hint="Keep the result: `net = nn.SyncBatchNorm.convert_sync_batchnorm(net)`.",
                where=(script.location(call),),
                severity=Severity.HINT,
            )


def check_run(evidence: Evidence) -> Observation:
    """Flag modules inside DDP whose parameters are no longer those that were wrapped."""
    from grader.checks.run.models.changed_models import changed_models, exchange_stopped
    from grader.checks.run.models.replica_comparison import sharded

    if sharded(evidence.trace):
        return not_observable("The model is sharded, not wrapped in DDP.")
    active = evidence.trace.trainers
    wrapped = [r for r in evidence.trace.ranks if any(w.kind == "ddp" for w in r.wraps)]
    changed = [r for r in wrapped if r.events("changed")]
    if not changed:
        if not active or not wrapped:
            return not_observable("No step of a model that was wrapped in DDP was seen.")
        converted = list(_retyped(evidence.script))
        if converted and exchange_stopped(evidence):
            return flagged(converted[0])
        if converted:
            return not_observable("Whether DDP lost its hooks shows only in what ranks exchange afterwards.")
        return verified("The model inside DDP kept the parameters that it had when it was wrapped.")
    return flagged(changed_models(changed, evidence, _source_hits(evidence.script), _WRAP_FIRST))


def _source_hits(script: Script) -> list[Hit]:
    hits = [h for h in check_source(script) if h.severity is None]
    return sorted(hits, key=lambda h: (h.where[0].path, h.where[0].line))
