"""A validation runs in training mode or with gradients on, or training in evaluation mode.

## What it finds
A loop over validation data that runs the network with no `model.eval()` on the way to it, or with no
`torch.no_grad()` around it; and a `model.eval()` after which training goes on with no `model.train()` between.

## Why it matters
In training mode dropout drops units and BatchNorm uses each batch's own statistics: the metric depends on the batch
size and on chance. Worse, BatchNorm's running statistics learn from the validation data, on each rank from another
share, and go into the checkpoint. With gradients on the metric is right (a hint), but every batch keeps its graph: the
validation takes twice the memory and more time than it has to. A network left in evaluation mode trains on
without dropout, and normalises by statistics that it never learns again: what it has learned may be worth nothing.

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
in those that call it or in those that it calls; and an `eval()` that a round of training comes to after its last
backward pass, directly or through calls, with no `train()` anywhere in that round. Where the network is known to
compute alike in both modes it is a hint.
In the run: the mode of the network, and of gradients, in the forward passes over the validation set, which are known by
its loader or, without one, by the number of their samples; and steps for which the network went forward with all of it
in evaluation mode. A pass in training mode over samples that the rank trains on lets statistics settle, and is no
validation where something else is. Layers that are frozen while others are in training mode are nobody's concern; a
network with trained statistics in evaluation mode from the first step on is a hint.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING

from grader.checks.phrases import at, count, epochs, every, place, places, ranks, told_once
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.checks.source.calls.uncalled_methods import parentheses, uncalled
from grader.checks.source.causes import lines
from grader.checks.source.metrics.validation_loops import validations
from grader.checks.source.models.evaluation_mode import callers, mode_switches, reaches
from grader.checks.source.models.left_in_evaluation import Left, left_in_evaluation
from grader.checks.source.models.mode_fixes import (
    back_to_training,
    gradients_named,
    in_evaluation_mode,
    without_gradients,
)
from grader.checks.source.models.networks import Holds
from grader.checks.source.models.unmet_training_mode import unmet_training_mode
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import Loop
from grader.model.finding import Severity
from grader.model.fix import Fix

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence
    from grader.checks.run.models.training_modes import EvaluationModeSteps
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
            yield _mode_hit(script, loop, call, network, in_evaluation_mode(script, loop, network, off))
        elif not off and not gradients_named(script) and not _in_own_context(script, call):
            yield Hit(
                message=f"{script.at(loop)} evaluates {script.quote(call)} with gradients on: every batch builds a "
                "graph that nobody uses, which costs memory and time. The metric itself is right.",
                hint=_GRAD_HINT,
                where=(script.location(loop),),
                severity=Severity.HINT,
                fix=without_gradients(script, loop),
            )
    for left in left_in_evaluation(script):
        yield _left_hit(script, left)


def _left_hit(script: Script, left: Left) -> Hit:
    name = ast.unparse(left.network or left.owner)
    where, again = (
        ("at the start of each round of", "") if left.within else ("before", ", each time that it begins")
    )
    apart = (
        ""
        if script.guards.partial(left.switch) is None
        else " It does so on some ranks only, so that the replicas compute differently, too."
    )
    early = (
        f" {script.quote(left.before[0])} at {script.at(left.before[0])} does not run between."
        if left.before
        else ""
    )
    return Hit(
        message=f"{script.at(left.switch)} puts the network into evaluation mode, and nothing puts it back before "
        f"{script.at(left.loop)} trains on: from then on there is no dropout, and BatchNorm learns no statistics any "
        f"more.{early}{apart}",
        hint=f"Call `{name}.train()` {where} the loop at {script.at(left.loop)}{again}.",
        where=(script.location(left.switch),),
        severity=Severity.HINT if script.networks.minds_mode(left.owner) is Holds.NO else None,
        fix=back_to_training(script, left),
    )


def _mode_hit(script: Script, loop: Loop, call: ast.Call, network: ast.expr, fix: Fix | None) -> Hit:
    minds = script.networks.minds_mode(network)
    today = " (The layers of this network compute alike in both modes; the next one may not.)"
    return Hit(
        message=f"{script.at(loop)} validates with {script.quote(call)}, and nothing puts the network into evaluation "
        "mode: dropout goes on dropping units, and BatchNorm scores each batch by its own statistics and learns from "
        f"the validation data.{today if minds is Holds.NO else ''}",
        hint=_mode_hint(script),
        where=(script.location(loop),),
        severity=Severity.HINT if minds is Holds.NO else None,
        fix=None if uncalled(script, "eval") else fix,
    )


def _mode_hint(script: Script) -> str:
    named = uncalled(script, "eval")
    return parentheses(script, named[0]) if named else _MODE_HINT


def _in_own_context(script: Script, call: ast.Call) -> bool:
    """Under a context manager of the script's own, which may switch gradients off."""
    tree = script.names.tree(call)
    managers = [i.context_expr for w in tree.withs if tree.inside(call, w) for i in w.items]
    return any(isinstance(m, ast.Call) and script.graph.targets(m) for m in managers)


def check_run(evidence: Evidence) -> Observation:
    """Flag steps in evaluation mode, and validation passes in training mode (warnings) or with gradients (hint)."""
    from grader.checks.run.models.training_modes import evaluation_mode_steps

    asleep, look = evaluation_mode_steps(evidence), _look_at_validation(evidence)
    return look if asleep is None else flagged(_asleep_hit(evidence.script, asleep), *look.hits)


def _look_at_validation(evidence: Evidence) -> Observation:
    from grader.checks.run.metrics.evaluation_passes import during_validation, of_validations_size
    from grader.checks.run.metrics.validation_modes import validated_in_training

    training: dict[int, list[Event]] = {}
    graphs: dict[int, list[Event]] = {}
    looked = 0
    for rank in evidence.trace.ranks:
        for event in (*during_validation(evidence, rank), *of_validations_size(evidence, rank)):
            looked += 1
            if event.fields.get("training_mode") is True:
                training.setdefault(rank.rank, []).append(event)
            elif event.fields.get("grad_enabled") is True:
                graphs.setdefault(rank.rank, []).append(event)
    if training:
        return flagged(validated_in_training(evidence, training, _mode_hint(evidence.script)))
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


def _asleep_hit(script: Script, found: EvaluationModeSteps) -> Hit:
    unmet = unmet_training_mode(script)
    numbers = next(iter(found.steps.values()))
    when = f" (the first being step {numbers[0]:,}{f', in {epochs(found.epochs)}' if found.epochs else ''})"
    some = f"{len(numbers):,} of {count(found.num_steps, 'step')}{when}"
    how = every(len(numbers), "step") if len(numbers) == found.num_steps else some
    left = f" {at(found.left)} called `eval` before." if found.left is not None else ""
    apart = (
        f" {ranks(found.others)} trained in training mode, so that replicas computed differently."
        if found.others
        else ""
    )
    meant = found.from_start and not found.untracked
    known = (
        " Where trained statistics are to stay as they are, that is right."
        if meant and found.num_batchnorm
        else ""
    )
    return Hit(
        message=f"{ranks(found.steps)} trained {how} with the whole network in evaluation mode, at "
        f"{at(found.site, 'an unknown line')}: {found.effect}.{left}{f' {unmet.says}' if unmet else ''}{apart}{known}",
        hint=unmet.hint
        if unmet
        else "Call `model.train()` each time before training goes on: at the start of each epoch, and after each "
        "evaluation within one.",
        where=told_once((*lines(script, [unmet.call] if unmet else []), *places((found.left, found.site)))),
        ranks=tuple(sorted(found.steps)),
        details={
            "steps": {str(rank): len(steps) for rank, steps in found.steps.items()},
            "epochs": list(found.epochs),
            "batchnorm": found.num_batchnorm,
            "dropout": found.num_dropout,
        },
        severity=Severity.HINT if meant or not (found.num_batchnorm or found.num_dropout) else None,
    )


def _as_training(evidence: Evidence) -> Hit | None:
    from grader.checks.run.metrics.evaluation_passes import validated_as_training

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
        hint=f"{_mode_hint(evidence.script)} {_GRAD_HINT}",
        where=place(site),
        ranks=tuple(sorted(found)),
        details={"validation_batches": {str(r): n for r, n in found.items()}},
    )
