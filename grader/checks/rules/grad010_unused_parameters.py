"""A parameter takes no part in the loss, and DDP waits for its gradient.

## What it finds
Layers that the forward pass never uses, or outputs that the loss leaves out, in a model wrapped without
`find_unused_parameters=True`.

## Why it matters
DDP counts a step as exchanged when every parameter's gradient has arrived. One that never comes leaves the exchange
open: the second step fails with "Expected to have finished reduction in the prior iteration", or, where the branch
taken differs among ranks, all of them wait for ever.

## Example
```python
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(8, 16)
        self.auxiliary = nn.Linear(16, 4)  # never used
        self.head = nn.Linear(16, 2)

    def forward(self, x):
        return self.head(self.hidden(x).relu())


model = DistributedDataParallel(Net())
for x, y in train_loader:
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
```

## Use instead
```python
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(8, 16)
        self.head = nn.Linear(16, 2)

    def forward(self, x):
        return self.head(self.hidden(x).relu())


model = DistributedDataParallel(Net())
for x, y in train_loader:
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
```

## How it is seen
In the run, by DDP's own exception at the second step, with the parameters that had no gradient at the first. In the
source, by a layer that a wrapped class makes and nothing ever reads.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from grader.checks.phrases import at, listed, place, ranks
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.checks.source.causes import layers_named, lines
from grader.checks.source.script import Script
from grader.model.finding import Severity
from grader.model.precondition import Precondition

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence

SEVERITY = Severity.ERROR
NEEDS = Precondition.GROUP
EXPLAINED_BY = ("GRAD009",)
_LAYERS = re.compile(
    r"^torch\.nn\.(Lazy)?(Linear|Bilinear|Conv(Transpose)?[123]d|BatchNorm[123]d|SyncBatchNorm|LayerNorm|GroupNorm"
    r"|Embedding|LSTM|GRU|RNN|MultiheadAttention|Transformer\w*|PReLU|Parameter)$"
)
_HINT = (
    "Remove the layer, or let its output take part in the loss; where a branch leaves it out on purpose, wrap with "
    "`find_unused_parameters=True`."
)


def check_source(script: Script) -> Iterable[Hit]:
    """Flag layers of wrapped classes that nothing reads."""
    if script.training.framework or not script.training.trains or script.replicas.some_ignored:
        return
    for wrap in script.training.wraps:
        allowed = [script.argument(wrap, n) for n in ("find_unused_parameters", "static_graph")]
        if any(a is not None and script.values.constant(a) is not False for a in allowed):
            continue
        module = script.argument(wrap, "module")
        origins = script.values.origins(module) if module is not None else ()
        for owner in (script.graph.built_class(o) for o in origins):
            if owner is not None and script.replicas.trained(wrap):
                yield from _unread(script, owner, wrap)


def _unread(script: Script, owner: ast.ClassDef, wrap: ast.Call) -> Iterable[Hit]:
    tree = script.names.tree(owner)
    init = next((s for s in owner.body if isinstance(s, ast.FunctionDef) and s.name == "__init__"), None)
    plain = [script.names.qualified(b) for b in owner.bases] == ["torch.nn.Module"]
    if init is None or not plain or _reads_by_name(script, owner):
        return
    for statement in init.body:
        if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
            continue
        made = script.names.qualified(statement.value.func) or ""
        for target in statement.targets:
            own = (
                isinstance(target, ast.Attribute)
                and isinstance(target.value, ast.Name)
                and target.value.id == "self"
            )
            if not own or not isinstance(target, ast.Attribute) or not _LAYERS.match(made):
                continue
            if any(k.arg == "requires_grad" for k in statement.value.keywords):
                continue
            read = any(t.attribute_loads.get(target.attr) or target.attr in t.constants for t in script.trees)
            stored = len(tree.attributes.get(target.attr, ())) > 1
            if not read and not stored:
                yield Hit(
                    message=f"{script.at(statement)} makes the layer `{target.attr}`, which no forward pass uses. DDP "
                    f"({script.at(wrap)}) waits for its gradient, and the second step fails.",
                    hint=_HINT,
                    where=(script.location(statement),),
                )


def _reads_by_name(script: Script, owner: ast.ClassDef) -> bool:
    """The class walks over its own layers, or reaches them by name: `self.children()`, `getattr(self, name)`."""
    tree = script.names.tree(owner)
    walking = ("children", "modules", "named_children", "named_modules", "_modules", "__dict__")
    reads = (n for name in walking for n in tree.attribute_loads.get(name, ()))
    stores = (d.node for name in walking for d in tree.attributes.get(name, ()))
    named = script.calls("getattr", "vars")
    return any(tree.inside(n, owner) for n in (*reads, *stores, *named))


def check_run(evidence: Evidence) -> Observation:
    """Flag DDP's complaint about gradients that never came."""
    from grader.checks.run.endings.exception_places import exception_places
    from grader.checks.run.gradients.unfinished_reductions import COMPLAINT, without_gradient

    wrapped = [r for r in evidence.trace.ranks if any(w.kind == "ddp" for w in r.wraps)]
    if not wrapped:
        return not_observable("No model was wrapped in DDP.")
    failed = [
        (r, e)
        for r in wrapped
        for e in r.events("exception")
        if COMPLAINT in str(e.fields.get("message", ""))
    ]
    if not failed:
        if len([r for r in evidence.trace.trainers if len(r.steps) > 1]) < len(wrapped):
            return not_observable(
                "No second step through DDP was seen, which is where a missing gradient shows."
            )
        return verified(
            "DDP finished every exchange: no gradient was missing, or it was told to look for those."
        )
    rank, event = failed[0]
    names = list(next((s.missing for s in rank.steps if s.num_missing), ()))
    indices = without_gradient(str(event.fields.get("message", "")))
    which = listed([f"`{n}`" for n in names], 4)
    if not which and indices:
        which = f"the parameters with the numbers {listed(indices, 6)}"
    site = next(iter(exception_places(event)), event.site)
    layers = [p for h in check_source(evidence.script) for p in h.where]
    layers = layers or [*lines(evidence.script, layers_named(evidence.script, names))]
    return flagged(
        Hit(
            message=f"{ranks(r.rank for r, _ in failed)} stopped because DDP was still waiting for gradients of the "
            f"step before: {which or 'some parameters'} took no part in the loss. {at(site, 'The next forward pass')} "
            "is where DDP noticed.",
            hint=_HINT,
            where=tuple(dict.fromkeys((*layers, *place(site)))),
            ranks=tuple(r.rank for r, _ in failed),
            details={"without_gradient": names, "numbers": list(indices)},
        )
    )
