"""Ranks step with gradients that were never averaged.

## What it finds
Optimizer steps at which ranks hold different gradients: a model never wrapped, a hand-written average that never runs,
runs for some steps alone, or is not waited for, a loss that is averaged in their place, a step under `no_sync` or
within the backward pass, parameters that DDP was told to leave alone, one rank that trains alone; and equal gradients
in which some rank's own have no part.

## Why it matters
Data-parallel training is one model trained by many: before each step all ranks average their gradients. Without that
each rank trains a model of its own on its own share of the data, and the one that is saved has learned from a fraction.

## Example
```python
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler

dist.init_process_group("gloo")
model = build_model()  # never wrapped
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for images, labels in DataLoader(train_set, batch_size=64, sampler=DistributedSampler(train_set)):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(images), labels).backward()
    optimizer.step()
```

## Use instead
```python
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

dist.init_process_group("gloo")
model = DistributedDataParallel(build_model())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for images, labels in DataLoader(train_set, batch_size=64, sampler=DistributedSampler(train_set)):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(images), labels).backward()
    optimizer.step()
```

## How it is seen
In the run each rank writes down sums over some gradients just before the optimizer steps, and the sums of all ranks are
compared step by step, or, where ranks step in different iterations, those of the same one; where updates are made by
hand, or each rank steps its own part, the weights that the next forward pass uses are compared instead. With DDP they
are equal to the bit. Ranks start with different random seeds, so equal gradients are no accident; where a script seeds
all ranks alike, equal gradients count only if there was something to average them: a wrapper, or at least one
collective per step. A rank has no part in an average either where its own backward passes gave less than a twentieth of
what another's gave, in each parameter that was looked at and for its share of samples. A few steps, drawn by lot, are
taken again with the task's network and the samples that each rank drew: what comes of every rank's has to be in what
was stepped on. Only ranks that hold equal parts of the model are compared: under tensor or pipeline parallelism those
at the same place of their meshes; where every rank has a part of its own (FSDP), none. There, parts that step with one
and the same gradient are seen, parts that never step, and, where the text turns the exchange off, steps before which
nothing was reduced, or an earlier micro-batch was and not the last. In the source: a script that starts a process group
and trains, with no wrapper, no library that wraps, and nothing that exchanges gradients or parameters; a model that
stays outside while others are wrapped, trained on what not all ranks have alike; a forward pass that `no_sync()`
covers, with its backward pass outside; a step in a round that `no_sync()` covers, or in which DDP's
`require_backward_grad_sync` or FSDP's `set_requires_gradient_sync` is off; exchanges of gradients that are started with
`async_op=True` and not all waited for; loops that average over a generator of parameters which something has gone
through already; and hooks made in a loop that look up its variable only when they are called, so that all exchange the
last one. Which line is to blame is looked for in a second run, line by line.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from grader.checks.phrases import every
from grader.checks.rule import Hit, Observation, flagged, not_observable, not_reached, verified
from grader.checks.source.calls.classes_as_values import named_by_path, used_as_value
from grader.checks.source.causes import lines
from grader.checks.source.collectives.collective_calls import INIT
from grader.checks.source.gradients.causes import WRAP, made_here
from grader.checks.source.gradients.late_bound_hooks import late_bound_hook
from grader.checks.source.gradients.late_waits import late_wait
from grader.checks.source.gradients.withheld_exchanges import withheld
from grader.checks.source.models.outside_models import trained_outside
from grader.checks.source.script import Script
from grader.checks.source.training_loops import DDP
from grader.checks.source.values.used_up_generators import used_up
from grader.model.finding import Severity
from grader.model.precondition import Precondition

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence

SEVERITY = Severity.ERROR
NEEDS = Precondition.GROUP
EXPLAINED_BY = ("DIST001", "DIST003", "DIST004", "GRAD002", "GRAD003", "GRAD009", "GRAD010", "GRAD011")


def check_source(script: Script) -> Iterable[Hit]:
    """Flag steps with gradients that nothing has averaged."""
    if script.training.framework or not script.calls(INIT):
        return
    for kept in () if script.averaging.all else withheld(script):
        says = f"{script.at(kept.node)} {kept.says}, so each rank trains a model of its own."
        yield Hit(says, kept.hint, (script.location(kept.node),), fix=kept.fix)
    if not any(map(script.may_run, script.training.wraps)):
        yield from _never_wrapped(script)
        # Whether sums are there in time is a race, and differs from run to run.
        vain = (late_bound_hook(script), None), (used_up(script), None), (late_wait(script), Severity.WARNING)
        for cause, severity in vain:
            if cause is not None:
                where = lines(script, cause.nodes)
                yield Hit(cause.says, cause.hint, where, severity=severity, fix=cause.fix)
    else:
        for cause in trained_outside(script):
            yield Hit(cause.says, cause.hint, (script.location(cause.nodes[0]),))


def _never_wrapped(script: Script) -> Iterable[Hit]:
    steps = [s for s in script.updates.steps if not script.guards.alone(s)]
    reached = [s for s in steps if script.updates.rounds(s, script.training.backwards)]
    if (
        not reached
        or script.names.foreign
        or script.averaging.may_exchange
        or script.calls("torch.nn.parallel.DataParallel")
        or used_as_value(script.trees, script.names, DDP)  # may wrap where nobody sees it
        or named_by_path(script.trees, DDP)
    ):
        return
    if any(script.replicas.on_some_ranks(s) is not None for s in reached):
        return  # one rank trains, the others serve
    if not any(made_here(script, b) for b in script.training.backwards):
        return  # the model comes from who knows where, and may be wrapped there
    first = reached[0]
    left, instead, idle = "", WRAP, script.averaging.never_run[:1]
    function = script.unreached.above(idle[0].call) if idle else None
    if function is not None:
        left = f" {script.at(idle[0].call)} would, and never runs, because nobody calls `{function.name}`."
        after = f"between `backward` and the step of {script.at(first)}"
        instead = f"Call `{function.name}` of {script.at(function)} {after}."
    yield Hit(
        message=f"{script.at(script.calls(INIT)[0])} starts a process group, but no model is wrapped and nothing "
        f"averages gradients: {script.at(first)} steps with those of its own rank, so each rank trains a model of its "
        f"own.{left}",
        hint=instead,
        where=(*lines(script, [one.call for one in idle]), script.location(first)),
    )


def check_run(evidence: Evidence) -> Observation:
    """Flag steps at which ranks held different gradients."""
    from grader.checks.run.gradients.exchanges import sent_nothing
    from grader.checks.run.gradients.gradient_differences import gradient_difference
    from grader.checks.run.gradients.lone_steps import alone, beside_equal_gradients, twins
    from grader.checks.run.gradients.sharded_exchanges import unreduced, whole_tensors_apart
    from grader.checks.run.gradients.unfinished_reductions import unfinished
    from grader.checks.run.models.model_parts import along_copies, copies, idle_parts, no_copies
    from grader.checks.run.models.replica_comparison import (
        compare_gradients,
        compare_parameters,
        in_parts_by_hand,
        incomparable,
    )
    from grader.checks.run.optimisation.step_moments import first_apart
    from grader.model.run import Ending

    active = evidence.trace.trainers
    idle = idle_parts(evidence)
    if idle is not None:
        return flagged(idle)
    if incomparable(evidence.trace):
        lone = unreduced(evidence, withheld(evidence.script)) or whole_tensors_apart(evidence)
        if lone is not None:
            return flagged(lone)
        return not_observable(no_copies(evidence, "gradients differ by design"))
    if len(active) == 1 and evidence.record.ending is Ending.COMPLETED:
        return flagged(alone(evidence, active[0]))
    if len(active) < 2:
        return not_observable("No optimizer step was seen on two ranks.")
    held, when, found = "gradients", "at", compare_gradients(evidence.trace)
    if not found.num_steps and first_apart(active) is not None:
        return not_observable(
            "Ranks stepped in different iterations: no two gradients were meant to be equal."
        )
    if not found.num_steps:
        # Updates by hand, or each rank its part: what came of them.
        held, when, found = "weights", "after", compare_parameters(evidence.trace)
    if not found.num_steps:
        return not_observable("No step was seen at which two ranks held gradients of the same tensors.")
    in_parts = in_parts_by_hand(evidence.trace) if found.difference is not None else ""
    if in_parts:
        return not_observable(f"{in_parts}: whose gradients should be equal can't be told.")
    if found.difference is not None and unfinished(active, found.difference.step):
        return not_reached(
            f"DDP had not finished the exchange of step {found.difference.step} when the run stopped."
        )
    if found.difference is not None:
        hit = gradient_difference(evidence, found, held)
        return flagged(replace(hit, hint=along_copies(evidence.ledger.layout) or hit.hint))
    if all(sent_nothing(r) for r in active):
        return flagged(twins(active, found, held))
    lone = beside_equal_gradients(evidence, found, held)
    if lone is not None:
        return flagged(lone)
    return verified(
        f"{held.capitalize()} of {copies(evidence, active)} were equal {when} {every(found.num_steps, 'step')} "
        f"compared, the last being step {found.last}."
    )
