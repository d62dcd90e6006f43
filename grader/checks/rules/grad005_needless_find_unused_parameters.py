"""`find_unused_parameters=True` where no parameter is unused.

## What it finds
DDP that is told to look for unused parameters, although every parameter takes part in every step.

## Why it matters
With the flag, DDP walks the whole graph after each forward pass to find parameters that will get no gradient. Where
there are none, this is time spent on nothing, each step, and the exchange starts later than it could.

## Example
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


model = DistributedDataParallel(Net(), find_unused_parameters=True)
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
```

## How it is seen
In the run, by the flag at the wrap and by parameters that all had a gradient at every step looked at, on every rank. In
the source only where it is plain: a straight-line `forward` that uses every layer of its class, or a classifier of
torchvision. Elsewhere the text alone can't tell, and says nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING

from grader.checks.phrases import at, count, place, ranks
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.checks.source.script import Script
from grader.checks.source.syntax.edits import Edits
from grader.checks.source.syntax.nodes import walk
from grader.model.finding import Severity
from grader.model.fix import Fix

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence

SEVERITY = Severity.HINT
_HINT = "Leave the argument out; put it back only when DDP reports parameters that were not used."
_WHOLE = (
    "resnet",
    "wide_resnet",
    "resnext",
    "vgg",
    "densenet",
    "mobilenet",
    "efficientnet",
    "vit_",
    "convnext",
)
_BRANCHES = (
    ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.Try, ast.Match, ast.Lambda, ast.ListComp, ast.GeneratorExp,
    ast.FunctionDef, ast.With,
)  # fmt: skip


def check_source(script: Script) -> Iterable[Hit]:
    """Flag the flag where the wrapped model plainly uses all it has."""
    if script.training.framework:
        return
    for wrap in script.training.wraps:
        flag = script.argument(wrap, "find_unused_parameters")
        module = script.argument(wrap, "module")
        if flag is None or module is None or script.values.constant(flag) is not True:
            continue
        origins = script.values.origins(module)
        if origins and all(_uses_everything(script, o) for o in origins):
            yield Hit(
                message=f"{script.at(flag)} makes DDP search the graph for unused parameters after each forward pass, "
                "but the model uses all it has in every pass, so there is nothing to find.",
                hint=_HINT,
                where=(script.location(flag),),
                fix=_fix(script, wrap),
            )


def _fix(script: Script, wrap: ast.Call) -> Fix | None:
    edits = Edits(script)
    edits.take_away(wrap, "find_unused_parameters", "False")
    return edits.fix("Leaves the search for unused parameters out.")


def _uses_everything(script: Script, origin: ast.AST) -> bool:
    if not isinstance(origin, ast.Call):
        return False
    name = script.names.qualified(origin.func) or ""
    if name.startswith("torchvision.models.") and name.count(".") == 2:
        return name.rpartition(".")[2].startswith(_WHOLE)
    owner = script.graph.built_class(origin)
    return owner is not None and _straight(script, owner, 0)


def _straight(script: Script, owner: ast.ClassDef, depth: int) -> bool:
    """A class whose one `forward` runs straight through every attribute that its constructor makes."""
    bases = [script.names.qualified(b) for b in owner.bases]
    own = {s.name: s for s in owner.body if isinstance(s, ast.FunctionDef)}
    if bases != ["torch.nn.Module"] or set(own) != {"__init__", "forward"} or depth > 3:
        return False
    if any(isinstance(n, _BRANCHES) for s in own["forward"].body for n in walk(s)):
        return False
    if any(isinstance(n, ast.Attribute) and n.attr == "requires_grad" for n in walk(owner)):
        return False
    made = [t for s in own["__init__"].body for t in _targets(s)]
    if not made or any(isinstance(s, _BRANCHES) for s in own["__init__"].body):
        return False
    used = {n.attr for s in own["forward"].body for n in walk(s) if isinstance(n, ast.Attribute)}
    return all(t.attr in used and _plain(script, v, depth) for t, v in made)


def _targets(statement: ast.stmt) -> list[tuple[ast.Attribute, ast.expr]]:
    if not isinstance(statement, ast.Assign):
        return []
    return [
        (t, statement.value)
        for t in statement.targets
        if isinstance(t, ast.Attribute) and isinstance(t.value, ast.Name) and t.value.id == "self"
    ]


def _plain(script: Script, value: ast.expr, depth: int) -> bool:
    """A layer of torch, a straight class of the submission, or no module at all."""
    for call in (n for n in walk(value) if isinstance(n, ast.Call)):
        name = script.names.qualified(call.func) or ""
        if name.startswith("torch.nn.") and name.rpartition(".")[2] not in ("ModuleList", "ModuleDict"):
            continue
        owner = script.graph.built_class(call)
        if owner is None or not _straight(script, owner, depth + 1):
            return False
    return True


def check_run(evidence: Evidence) -> Observation:
    """Flag the flag where every parameter had a gradient at every step looked at."""
    active = evidence.trace.trainers
    wraps = [(r, w) for r in active for w in r.wraps if w.kind == "ddp"]
    if not wraps:
        return not_observable("No model was wrapped in DDP.")
    asked = [(r, w) for r, w in wraps if w.find_unused_parameters]
    if not asked:
        return verified("DDP is not told to look for unused parameters.")
    if any(r.events("changed") for r in active):
        return not_observable(
            "The model was changed after the wrap, so DDP may wait for gradients that never come."
        )
    steps = [s for r in active for s in r.steps if s.num_missing is not None]
    if not steps or any(s.num_params is None or s.num_params == 0 for s in steps):
        return not_observable("No step was seen at which gradients could be counted.")
    unused = [s for s in steps if s.num_missing]
    if unused:
        return verified(
            f"Parameters without a gradient were seen at {count(len(unused), 'step')}, so the search has work to do."
        )
    held = sum(w.num_tensors for w in asked[0][0].wraps if w.kind == "ddp")
    known = sum({s.optimizer: s.num_params or 0 for s in asked[0][0].steps if s.num_params}.values())
    if known < held:
        return not_observable("Not all parameters of the wrapped model belong to an optimizer that stepped.")
    wrap = asked[0][1]
    return flagged(
        Hit(
            message=f"{ranks(r.rank for r, _ in asked)} let DDP look for unused parameters, and there are none: all "
            f"{wrap.num_tensors} tensors had a gradient at each of the {len(steps)} steps looked at. "
            f"{at(wrap.site, 'The wrap')} asks for the search.",
            hint=_HINT,
            where=place(wrap.site),
            ranks=tuple(r.rank for r, _ in asked),
            details={"num_tensors": wrap.num_tensors, "steps_looked_at": len(steps)},
        )
    )
