"""Replicas end with different parameters.

## What it finds
Ranks whose trained parameters differ after the same number of steps, although their gradients were averaged.

## Why it matters
DDP makes replicas equal once, when it wraps the model; afterwards it only keeps gradients equal. Parameters that one
rank changes for itself (a checkpoint loaded on rank 0 after the wrap, a clamp on one rank, a learning rate or momentum
of its own) stay different for ever: gradients are then averages of gradients of different models.

## Example
```python
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

model = DistributedDataParallel(build_model())
if dist.get_rank() == 0:
    model.module.load_state_dict(torch.load("start.pt", weights_only=True))
for images, labels in train_loader:
    optimizer.zero_grad()
    loss_of(model(images), labels).backward()
    optimizer.step()
```

## Use instead
```python
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

model = build_model()
if dist.get_rank() == 0:
    model.load_state_dict(torch.load("start.pt", weights_only=True))
model = DistributedDataParallel(model)  # sends rank 0's parameters to all
for images, labels in train_loader:
    optimizer.zero_grad()
    loss_of(model(images), labels).backward()
    optimizer.step()
```

## How it is seen
In the run: sums over parameters, as the training pass after a step finds them and as they are at the end, compared
among ranks: of the same few at each step that is looked at, and of others that are drawn anew. Parameters only: running
statistics of BatchNorm differ under correct DDP. What is changed after the last step (the best weights loaded on rank
0) does not count, nor does what an optimizer still holds of a layer that was replaced. In the source: weights of a
wrapped model that are loaded, drawn anew or changed in place under a test of the rank, before or between steps, with
nothing that sends them to the others; steps under such a test after a backward pass of all ranks; an optimizer's state
that is cleared, loaded or built anew under one; and models that are drawn with another seed on each rank, or none, and
then sharded, or wrapped with `init_sync=False`, where nothing sends or loads weights: the run confirms it by the states
of the ranks' generators, or by the parameters; and shards that one rank sends to all. Where ranks stepped with rates,
or other options, of their own, these are told with the line that makes them of the rank. Which line is to blame is
looked for in a second run, line by line.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING

from grader.checks.phrases import count, every, listed, ranks
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.checks.source.gradients.lone_steps import LoneStep, lone_steps
from grader.checks.source.models.broadcast_shards import broadcast_shards
from grader.checks.source.models.unsent_weights import shards_of_different_models, wrapped_unsent
from grader.checks.source.models.weight_changes import BEFORE_THE_WRAP, weight_changes
from grader.checks.source.optimisation.optimizer_changes import LoneChange, lone_optimizer_changes
from grader.checks.source.script import Script
from grader.model.finding import Severity
from grader.model.precondition import Precondition

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence
    from grader.checks.run.models.divergence_causes import DriftCause
    from grader.checks.run.models.replica_comparison import Comparison
    from grader.model.trace import RankTrace

SEVERITY = Severity.ERROR
NEEDS = Precondition.GROUP
EXPLAINED_BY = (
    "DIST001", "GRAD001", "GRAD002", "GRAD003", "GRAD009", "GRAD010", "GRAD011", "DATA005", "OPT004",
)  # fmt: skip


def check_source(script: Script) -> Iterable[Hit]:
    """Flag weights of a wrapped model that some ranks change for themselves."""
    unsent = shards_of_different_models(script)
    if unsent is not None:
        yield Hit(
            message=f"{script.at(unsent.node)} {unsent.says}. Sharding sends no weights, as DDP does: each rank "
            "trains its part of another model.",
            hint=unsent.hint,
            where=(script.location(unsent.node),),
            fix=unsent.fix,
            severity=unsent.severity,
        )
    for sent in broadcast_shards(script):
        where = (script.location(sent.nodes[0]),)
        yield Hit(sent.says, sent.hint, where, severity=Severity.WARNING)
    if script.training.framework or not (script.training.wraps or script.averaging.all):
        return
    unsynced = wrapped_unsent(script)
    if unsynced is not None:
        where = (script.location(unsynced.nodes[0]),)
        yield Hit(unsynced.says, unsynced.hint, where, fix=unsynced.fix)
    steps = lone_steps(script) if script.training.wraps else ()
    alone: list[LoneStep | LoneChange] = [*steps, *lone_optimizer_changes(script)]
    for lone in alone:
        where = (script.location(lone.node),)
        yield Hit(f"{script.at(lone.node)} {lone.says}", lone.hint, where, fix=lone.fix)
    blamed: set[ast.AST] = set()
    for node, owner in weight_changes(script):
        wrap = script.replicas.wrap_of(owner)
        if wrap is None or not script.replicas.trained_after(node) or script.replicas.wrapped_again(node):
            continue
        guard = script.replicas.on_some_ranks(node)
        if (
            guard is None
            or not guard.condition.sure
            or guard.test in blamed
            or script.replicas.sent_later(node)
        ):
            continue
        blamed.add(guard.test)  # one block, one mistake
        yield Hit(
            message=f"{script.at(node)} changes the weights of the model that DDP has wrapped in {script.at(wrap)} on "
            f"some ranks only ({script.quote(guard.test)}). DDP sent rank 0's weights to all when it wrapped; what "
            "changes later stays different for ever.",
            hint=BEFORE_THE_WRAP,
            where=(script.location(node),),
        )


def check_run(evidence: Evidence) -> Observation:
    """Flag parameters that differ at the same step, or at the end after equal numbers of steps."""
    from grader.checks.run.models import replica_comparison as replicas
    from grader.checks.run.models.divergence_causes import divergence_cause
    from grader.checks.run.models.initial_shards import different_models, sent_shards
    from grader.checks.run.models.model_parts import copies, no_copies

    if replicas.incomparable(evidence.trace):
        apart = different_models(evidence) or sent_shards(evidence)
        if apart is not None:
            return flagged(apart)
        return not_observable(no_copies(evidence, "there are no replicas to compare"))
    active = evidence.trace.trainers
    if len(active) < 2:
        return not_observable("No optimizer step was seen on two ranks.")
    during = replicas.compare_parameters(evidence.trace)
    in_parts = replicas.in_parts_by_hand(evidence.trace)
    if in_parts:
        return not_observable(f"{in_parts}: whose parameters should be equal can't be told.")
    if during.difference is not None:
        return flagged(_during(active, during, divergence_cause(evidence)))
    at_end = _at_end(evidence.ledger.layout.pairs(active), during)
    if at_end:
        return flagged(_end_hit(active, at_end, divergence_cause(evidence)))
    if during.num_steps:
        return verified(
            f"Parameters of {copies(evidence, active)} were equal at {every(during.num_steps, 'step')} compared"
            + (" and at the end." if at_end == {} else ".")
        )
    if at_end == {}:
        return verified(f"Parameters of {copies(evidence, active)} were equal when the scripts ended.")
    return not_observable("No parameters of two ranks were seen after the same step.")


def _at_end(
    pairs: Iterable[tuple[RankTrace, RankTrace]], during: Comparison
) -> dict[tuple[int, int], list[str]] | None:
    """Two ranks that hold equal parts → names of parameters that differ at the end; None where it can't be told."""
    from grader.checks.run.models.replica_comparison import compare_finals

    found: dict[tuple[int, int], list[str]] = {}
    comparable = False
    for first, other in pairs:
        sampled = {name for r in (first, other) for p in r.params for name in p.names}
        # After different numbers of steps parameters differ by right; that is DATA005's matter.
        different = compare_finals(first, other) if len(other.steps) == len(first.steps) else None
        if different is None:
            continue
        comparable = True
        names = [name for name, _, _ in different]
        if names and during.num_steps and sampled.intersection(names):
            # Equal at the last step and different now: one rank changed its copy when training was over.
            continue
        if names:
            found[first.rank, other.rank] = names
    return found if comparable else None


def _during(active: tuple[RankTrace, ...], found: Comparison, cause: DriftCause) -> Hit:
    difference = found.difference
    assert difference is not None
    a, b = difference.ranks
    return Hit(
        message=(
            f"{ranks((a, *found.ranks))} had different parameters after step {difference.step} "
            f"(`{difference.names[0]}`: sum {difference.sums[0][0]} against {difference.sums[1][0]}), and at "
            f"{found.num_different:,} of {count(found.num_steps, 'compared step')}. "
            f"{cause.why}"
        ),
        hint=cause.hint,
        fix=cause.fix,
        where=cause.where,
        ranks=(a, *found.ranks),
        details={
            "first_step": difference.step,
            "tensors": list(difference.names[:8]),
            f"sums_rank_{a}": list(difference.sums[0][:8]),
            f"sums_rank_{b}": list(difference.sums[1][:8]),
            "steps_by_rank": {str(r.rank): len(r.steps) for r in active},
        },
    )


def _end_hit(
    active: tuple[RankTrace, ...], at_end: dict[tuple[int, int], list[str]], cause: DriftCause
) -> Hit:
    (first, rank), names = next(iter(at_end.items()))
    concerned = tuple(sorted({r for pair in at_end for r in pair}))
    return Hit(
        message=(
            f"{ranks(concerned)} ended with different parameters after the same "
            f"{count(len(active[0].steps), 'step')}: {count(len(names), 'tensor')} of rank {rank} differ from "
            f"rank {first}'s "
            f"({listed([f'`{n}`' for n in names], 3)}). {cause.why}"
        ),
        hint=cause.hint,
        fix=cause.fix,
        where=cause.where,
        ranks=concerned,
        details={"tensors": names[:8], "steps_by_rank": {str(r.rank): len(r.steps) for r in active}},
    )
