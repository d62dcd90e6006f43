"""A part of the training stays on the CPU.

## What it finds
A training script for one process that moves nothing to a device, or that moves some of it and forgets the rest: the
model, the inputs or the targets. In a script of several processes, a batch of which only one half is moved (a hint).

## Why it matters
A tensor lies where it was made, and that is the CPU unless somebody says otherwise: models and the batches of a
`DataLoader` too. With a GPU in the machine, a script that moves nothing leaves it idle, and one that moves only some of
it ends with "Expected all tensors to be on the same device". On a machine without a GPU neither shows.

## Example
```python
import torch
from torch import nn
from torch.utils.data import DataLoader

model = nn.Linear(784, 10)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for images, labels in DataLoader(train_set, batch_size=64, shuffle=True):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(images.flatten(1)), labels).backward()
    optimizer.step()
```

## Use instead
```python
import torch
from torch import nn
from torch.utils.data import DataLoader

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(784, 10).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for images, labels in DataLoader(train_set, batch_size=64, shuffle=True):
    images, labels = images.to(device), labels.to(device)
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(images.flatten(1)), labels).backward()
    optimizer.step()
```

## How it is seen
In the source: in a script that has a training loop over a `DataLoader` and is not written for several processes, a
model, or one of the two names of a batch, that nothing moves to a device: not as a whole, not part by part, not by
being made under `with device:`, and not in a call that gets both it and a device and that nobody can look into. On a
GPU the run decides: whether its allocator had handed out memory at the training's steps.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from grader.checks.phrases import count, first_known, place
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.checks.source.calls.arguments import called_on
from grader.checks.source.devices.tensor_placement import MOVES, Placement
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import FUNCTIONS
from grader.checks.source.training_loops import Draw
from grader.model.finding import EvidenceKind, Severity

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence

SEVERITY = Severity.WARNING
_HINT = (
    '`device = torch.device("cuda" if torch.cuda.is_available() else "cpu")` once, then `model.to(device)`, and in '
    "each step `inputs.to(device)` and `targets.to(device)`."
)


def check_source(script: Script) -> Iterable[Hit]:
    """Flag training loops whose model or batches nothing moves."""
    placement = Placement(script)
    if script.training.framework or placement.default_chosen:
        return
    loops = [draw for draw in script.training.draws if draw.trains and draw.loaders]
    if script.mentions_distributed:
        # Which device a rank has, other rules ask; that both halves of a batch go there, nobody else does.
        for draw in loops:
            yield from (replace(hit, severity=Severity.HINT) for hit in _half_moved(script, placement, draw))
        return
    if not loops:
        return
    moved = any(placement.is_move(call) for call in script.called(*MOVES))
    if not moved and not script.calls_given("device", "device_map"):
        node = loops[0].loop
        yield Hit(
            message=f"{script.at(node)} trains, and nothing in the script moves the model or the batches to a device: "
            "with a GPU in the machine, all of it still runs on the CPU.",
            hint=_HINT,
            where=(script.location(node),),
        )
        return
    yield from _unmoved_models(script, placement)
    yield from _thrown_away(script, placement)
    for draw in loops:
        yield from _half_moved(script, placement, draw)


def _unmoved_models(script: Script, placement: Placement) -> Iterable[Hit]:
    """Models whose parameters an optimizer gets, and which stay where they were made."""
    for call in script.called("parameters"):
        if not isinstance(call.func, ast.Attribute) or not _given_to_optimizer(script, call):
            continue
        model = call.func.value
        origins = script.values.origins(model)
        # What comes from elsewhere may have been moved there.
        if all(isinstance(o, ast.Call) for o in origins) and not placement.placed(model):
            yield Hit(
                message=f"{script.at(call)} trains a model that nothing has moved to a device, in a script that moves "
                "other things to one.",
                hint=_HINT,
                where=(script.location(call),),
            )


def _given_to_optimizer(script: Script, call: ast.Call) -> bool:
    above = script.names.tree(call).parent.get(call)
    name = script.names.qualified(above.func) if isinstance(above, ast.Call) else None
    return name is not None and name.startswith("torch.optim.")


def _thrown_away(script: Script, placement: Placement) -> Iterable[Hit]:
    """`images.to(device)` as a statement: of a tensor that makes a copy, which nobody keeps; a module moves itself."""
    batches = {name for draw in script.training.draws for name in _pair(draw.loop) or ()}
    for call in script.called(*MOVES):
        tree = script.names.tree(call)
        above = tree.parent.get(call)
        if isinstance(above, ast.Tuple):
            above = tree.parent.get(above)
        if not isinstance(above, ast.Expr) or not placement.is_move(call):
            continue
        owner = called_on(call)
        if not isinstance(owner, ast.Name):
            continue
        drawn = owner.id in batches and any(tree.inside(call, draw.loop) for draw in script.training.draws)
        if drawn or _given_a_batch(script, tree.function(call), owner.id, batches):
            yield Hit(
                message=f"{script.at(call)} makes a copy of `{owner.id}` on the device, and nothing keeps it: "
                f"`{owner.id}` itself stays where it is.",
                hint=f"Keep what it returns: `{owner.id} = {ast.unparse(call)[:60]}`.",
                where=(script.location(call),),
            )


def _given_a_batch(script: Script, function: ast.AST | None, name: str, batches: set[str]) -> bool:
    """Whether a parameter of that name is given a part of a batch somewhere."""
    if not isinstance(function, FUNCTIONS):
        return False
    given = (script.graph.bound(site, function, name) for site in script.graph.sites(function))
    return any(isinstance(one, ast.Name) and one.id in batches for one in given)


def _half_moved(script: Script, placement: Placement, draw: Draw) -> Iterable[Hit]:
    """Loops over pairs of which one half is moved, and the other is used where it lies."""
    names = _pair(draw.loop)
    if names is None:
        return
    moved = _moved_names(script, placement, draw.loop)
    handed = {
        name
        for call in script.names.tree(draw.loop).calls_within(draw.loop)
        for function in script.graph.targets(call)
        for name in _moved_inside(script, placement, call, function)
    }
    tree = script.names.tree(draw.loop)
    read = [n for n in names if any(tree.inside(load, draw.loop) for load in tree.loads.get(n, ()))]
    left = [name for name in read if name not in moved | handed]
    if len(left) == 1 and len(read) == 2:
        other = next(name for name in names if name != left[0])
        yield Hit(
            message=f"{script.at(draw.loop)} draws `{other}` and `{left[0]}`, and only `{other}` is moved to a device: "
            f"with a GPU, `{left[0]}` stays on the CPU and the loss can't be computed.",
            hint=_HINT,
            where=(script.location(draw.loop),),
        )


def _moved_names(script: Script, placement: Placement, node: ast.AST) -> set[str]:
    """Names that something inside a node moves to a device, also as a part of what is moved: `mix(x).to(device)`."""
    tree = script.names.tree(node)
    owners = (
        call.func.value
        for call in tree.calls_within(node)
        if isinstance(call.func, ast.Attribute) and placement.is_move(call)
    )
    parts = (part for owner in owners for part in script.values.closure(owner))
    return {part.id for part in parts if isinstance(part, ast.Name) and tree.inside(part, node)}


def _moved_inside(script: Script, placement: Placement, call: ast.Call, function: ast.AST) -> Iterable[str]:
    """Names that a call hands to a function of the script's which moves what it is given."""
    if not isinstance(function, FUNCTIONS):
        return
    moved = _moved_names(script, placement, function)
    for site in script.graph.sites(function):
        given = (script.graph.bound(site, function, name) for name in moved if site.call is call)
        yield from (one.id for one in given if isinstance(one, ast.Name))


def _pair(loop: ast.AST) -> tuple[str, str] | None:
    """The two names of `for a, b in …` or `for n, (a, b) in enumerate(…)`, where both are used by their names."""
    target = loop.target if isinstance(loop, ast.For) else None
    if isinstance(target, ast.Tuple) and len(target.elts) == 2 and isinstance(target.elts[1], ast.Tuple):
        target = target.elts[1]
    elif isinstance(loop, ast.For) and isinstance(loop.iter, ast.Call):
        called = loop.iter.func
        if isinstance(called, ast.Name) and called.id == "enumerate":
            return None
    if not isinstance(target, ast.Tuple) or len(target.elts) != 2:
        return None
    first, second = target.elts
    if not isinstance(first, ast.Name) or not isinstance(second, ast.Name):
        return None
    return first.id, second.id


def check_run(evidence: Evidence) -> Observation:
    """On a GPU, say whether the steps had anything there."""
    if evidence.profile == "cpu":
        why = "There is no GPU here, so where the tensors would have been was read in the text alone."
        if any(True for _ in check_source(evidence.script)):
            return not_observable(why)
        return verified(f"{why} Nothing in it stays behind.", EvidenceKind.SOURCE)
    steps = [step for rank in evidence.trace.ranks for step in rank.steps]
    if not steps:
        return not_observable("No training steps were seen.")
    if any(step.device_bytes for step in steps):
        return verified(f"The GPU held tensors at {count(len(steps), 'step')}.")
    site = first_known([step.site for step in steps])
    return flagged(
        Hit(
            message=f"At none of {count(len(steps), 'step')} the GPU held a tensor: the training ran on the CPU.",
            hint=_HINT,
            where=place(site),
        )
    )
