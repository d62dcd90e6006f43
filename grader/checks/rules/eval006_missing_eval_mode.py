"""A validation runs in training mode, or with gradients on.

## What it finds
A loop over validation data that runs the network with no `model.eval()` on the way to it, or with no
`torch.no_grad()` around it; and a `model.eval()` between two epochs after which no `model.train()` comes.

## Why it matters
In training mode dropout drops units and BatchNorm uses each batch's own statistics: the metric depends on the batch
size and on chance. Worse, BatchNorm's running statistics learn from the validation data, on each rank from another
share, and go into the checkpoint. With gradients on the metric is right (a hint), but every batch keeps its graph: the
validation takes twice the memory and more time than it has to. A network left in evaluation mode trains on
without dropout.

## Example
```python
import torch
import torch.distributed as dist
import torchvision
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(torchvision.models.resnet18())
for epoch in range(10):
    model.train()
    train_one_epoch(model, train_loader)
    counts = torch.zeros(2)
    with torch.no_grad():
        for images, labels in val_loader:
            counts[0] += (model(images).argmax(dim=1) == labels).sum()
            counts[1] += len(labels)
    dist.all_reduce(counts)
dist.destroy_process_group()
```

## Use instead
```python
import torch
import torch.distributed as dist
import torchvision
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(torchvision.models.resnet18())
for epoch in range(10):
    model.train()
    train_one_epoch(model, train_loader)
    counts = torch.zeros(2)
    model.eval()
    with torch.no_grad():
        for images, labels in val_loader:
            counts[0] += (model(images).argmax(dim=1) == labels).sum()
            counts[1] += len(labels)
    dist.all_reduce(counts)
dist.destroy_process_group()
```

## How it is seen
In the source: a loop that evaluates (its data or its place say so), and no `eval()` or `train(False)` in its function,
in those that call it or in those that it calls. Where the network is known to compute alike in both modes it is a hint.
In the run: the mode of the network, and of gradients, in the forward passes over the validation set.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING

from grader.checks.phrases import at, count, place, places, ranks
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.checks.source.edits import Edits
from grader.checks.source.evaluation_mode import callers, mode_switches, never_left, reaches
from grader.checks.source.networks import Holds
from grader.checks.source.script import Script
from grader.checks.source.syntax_nodes import Loop, walk
from grader.checks.source.validation_loops import validations
from grader.model.finding import Severity
from grader.model.fix import Fix

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence
    from grader.model.trace import Event

SEVERITY = Severity.WARNING
_MODE_HINT = "Call `model.eval()` before the loop and `model.train()` before training goes on."
_GRAD_HINT = "Put the loop under `with torch.no_grad():` (or `torch.inference_mode()`)."


def check_source(script: Script) -> Iterable[Hit]:
    """Flag validation loops that nothing puts into evaluation mode, and those that keep gradients."""
    if not script.joins_group or not (script.training.trains or script.training.wraps):
        return
    switches = mode_switches(script)
    told: set[Loop] = set()
    for loop, call, network in validations(script):
        if loop in told:
            continue
        told.add(loop)
        leading = callers(script, loop)
        around = {script.names.tree(loop).function(loop), *(f for f, _ in leading)}
        off = script.training.gradients_off(call) or any(script.training.gradients_off(c) for _, c in leading)
        if not any(reaches(script, switch, loop, around) for switch in switches):
            yield _mode_hit(script, loop, call, network, _in_evaluation_mode(script, loop, network, off))
        elif not off and not _gradients_named(script) and not _in_own_context(script, call):
            yield Hit(
                message=f"{script.at(loop)} evaluates {script.quote(call)} with gradients on: every batch builds a "
                "graph that nobody uses, which costs memory and time. The metric itself is right.",
                hint=_GRAD_HINT,
                where=(script.location(loop),),
                severity=Severity.HINT,
                fix=_without_gradients(script, loop),
            )
    for switch, loop in never_left(script, switches):
        yield _never_left(script, switch, loop)


def _never_left(script: Script, switch: ast.Call, loop: Loop) -> Hit:
    network = switch.func.value if isinstance(switch.func, ast.Attribute) else switch
    guard = script.guards.partial(switch)
    apart = (
        ""
        if guard is None
        else " It does so on some ranks only, so that the replicas compute differently, too."
    )
    edits = Edits(script)
    edits.before(loop, f"{ast.unparse(network)}.train()")
    return Hit(
        message=f"{script.at(switch)} puts the network into evaluation mode, and nothing puts it back: from the second "
        f"round on {script.at(loop)} trains without dropout, and BatchNorm learns no statistics any more.{apart}",
        hint=f"Call `{ast.unparse(network)}.train()` at the start of each epoch.",
        where=(script.location(switch),),
        severity=Severity.HINT if script.networks.minds_mode(network) is Holds.NO else None,
        fix=edits.fix("Goes back to training mode.")
        if script.names.tree(switch).scope(switch) is script.names.tree(loop).scope(loop)
        else None,
    )


def _without_gradients(script: Script, loop: Loop) -> Fix | None:
    edits = Edits(script)
    edits.wrap([loop], f"with {edits.name('torch.no_grad', loop)}():")
    return edits.fix("Evaluates without gradients.")


def _in_evaluation_mode(script: Script, loop: Loop, network: ast.expr, off: bool) -> Fix | None:
    """The mode switched before a loop and back after it, and gradients switched off where they are on."""
    edits, name, tree = Edits(script), ast.unparse(network), script.names.tree(loop)
    leaves = [r for r in tree.returns.get(tree.function(loop) or tree.root, ()) if tree.inside(r, loop)]
    if (
        not isinstance(network, ast.Name | ast.Attribute)
        or leaves
        or _gradients_named(script)
        or _changes(loop, name)
    ):
        return None
    if off:
        edits.before(loop, f"{name}.eval()")
    else:
        edits.wrap([loop], f"with {edits.name('torch.no_grad', loop)}():", f"{name}.eval()")
    edits.after(loop, f"{name}.train()")
    return edits.fix("Evaluates in evaluation mode, and goes back to training mode.")


def _changes(loop: Loop, name: str) -> bool:
    """Whether a loop gives what it evaluates another meaning on its way."""
    first = name.partition(".")[0]
    return any(isinstance(n, ast.Name) and n.id == first and isinstance(n.ctx, ast.Store) for n in walk(loop))


def _mode_hit(script: Script, loop: Loop, call: ast.Call, network: ast.expr, fix: Fix | None) -> Hit:
    minds = script.networks.minds_mode(network)
    today = " (The layers of this network compute alike in both modes; the next one may not.)"
    return Hit(
        message=f"{script.at(loop)} validates with {script.quote(call)}, and nothing puts the network into evaluation "
        "mode: dropout goes on dropping units, and BatchNorm scores each batch by its own statistics and learns from "
        f"the validation data.{today if minds is Holds.NO else ''}",
        hint=_MODE_HINT,
        where=(script.location(loop),),
        severity=Severity.HINT if minds is Holds.NO else None,
        fix=fix,
    )


def _in_own_context(script: Script, call: ast.Call) -> bool:
    """Under a context manager of the script's own, which may switch gradients off."""
    tree = script.names.tree(call)
    managers = [i.context_expr for w in tree.withs if tree.inside(call, w) for i in w.items]
    return any(isinstance(m, ast.Call) and script.graph.targets(m) for m in managers)


def _gradients_named(script: Script) -> bool:
    """Gradients are switched by hand, or asked for on purpose (`torch.autograd.grad`)."""
    return bool(script.called("set_grad_enabled", "grad"))


def check_run(evidence: Evidence) -> Observation:
    """Flag validation passes whose forward passes ran in training mode (warning) or with gradients (hint)."""
    from grader.checks.run.evaluation_passes import during_validation

    training: dict[int, list[Event]] = {}
    graphs: dict[int, list[Event]] = {}
    looked = 0
    for rank in evidence.trace.ranks:
        for event in during_validation(evidence, rank):
            looked += 1
            if event.fields.get("training_mode") is True:
                training.setdefault(rank.rank, []).append(event)
            elif event.fields.get("grad_enabled") is True:
                graphs.setdefault(rank.rank, []).append(event)
    if training:
        return flagged(_run_hit(evidence, training))
    hidden = _as_training(evidence)
    if hidden is not None:
        return flagged(hidden)
    if graphs:
        events = [e for found in graphs.values() for e in found]
        return flagged(
            Hit(
                message=f"{ranks(graphs)} validated with gradients on, at {at(events[0].site, 'an unknown line')}: "
                "every batch built a graph that nobody used, which costs memory and time. The metric itself is right.",
                hint=_GRAD_HINT,
                where=places(e.site for e in events),
                ranks=tuple(sorted(graphs)),
                severity=Severity.HINT,
            )
        )
    if not looked:
        return not_observable("No forward pass over the validation set was seen.")
    return verified(
        f"{count(looked, 'run', 'runs')} of forward passes over the validation set were in evaluation mode, without "
        "gradients."
    )


def _as_training(evidence: Evidence) -> Hit | None:
    from grader.checks.run.evaluation_passes import validated_as_training

    found, site = validated_as_training(evidence)
    if not found:
        return None
    batches = next(iter(found.values()))
    return Hit(
        message=(
            f"{ranks(found)} ran {count(batches, 'validation batch', 'validation batches')} through the network in "
            "training mode with gradients on, as if they were training. Dropout dropped units, and BatchNorm scored "
            "each batch by its own statistics and learned from the validation data."
        ),
        hint=f"{_MODE_HINT} {_GRAD_HINT}",
        where=place(site),
        ranks=tuple(sorted(found)),
        details={"validation_batches": {str(r): n for r, n in found.items()}},
    )


def _run_hit(evidence: Evidence, training: dict[int, list[Event]]) -> Hit:
    events = [e for found in training.values() for e in found]
    norms = max((w.num_batchnorm for r in evidence.trace.ranks for w in r.wraps), default=0)
    minds = norms > 0 or "ropout" in "".join(t.text for t in evidence.script.trees)
    why = (
        f"Its {count(norms, 'BatchNorm layer')} scored each batch by its own statistics, and learned from the "
        "validation data what then goes into the checkpoint."
        if norms
        else "Dropout goes on dropping units there, so the metric depends on chance."
        if minds
        else "Its layers compute alike in both modes today; the next one may not."
    )
    return Hit(
        message=(
            f"{ranks(training)} validated with the network in training mode ({count(len(events), 'run')} of forward "
            f"passes, at {at(events[0].site, 'an unknown line')}). {why}"
        ),
        hint=_MODE_HINT,
        where=places(e.site for e in events),
        ranks=tuple(sorted(training)),
        details={
            "runs_in_training_mode": {str(r): len(found) for r, found in training.items()},
            "batchnorm": norms,
        },
        severity=None if minds else Severity.HINT,
    )
