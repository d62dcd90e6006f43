"""Ranks step with different learning rates, or other settings.

## What it finds
Optimizers whose learning rates differ between ranks at the same step, as after a schedule that each rank steers by a
metric or a clock of its own; and those whose other settings do (`momentum`, `betas`, `eps`, `weight_decay`, …).

## Why it matters
DDP makes gradients equal, not steps. Where one rank lowers its rate and another does not, equal gradients move the
weights differently, and from then on the replicas are different models that average gradients of each other. Of a model
in shards, each rank then trains its part by other rules.

## Example
```python
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

dist.init_process_group("gloo")
model = DistributedDataParallel(build_model())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
sampler = DistributedSampler(train_set)
loader = DataLoader(train_set, batch_size=64, sampler=sampler)
for epoch in range(10):
    sampler.set_epoch(epoch)
    total = 0.0
    for images, labels in loader:
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    scheduler.step(total / len(loader))
dist.destroy_process_group()
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
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
sampler = DistributedSampler(train_set)
loader = DataLoader(train_set, batch_size=64, sampler=sampler)
for epoch in range(10):
    sampler.set_epoch(epoch)
    total = torch.zeros(1)
    for images, labels in loader:
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.detach()
    dist.all_reduce(total)  # the same number on every rank
    scheduler.step(total.item() / len(loader))
dist.destroy_process_group()
```

## How it is seen
In the run, by the learning rates that all ranks stepped with, step by step, and by the optimizers' other settings, at
the first step and wherever they have changed; only where ranks step the same parameters, or each its part of them. In
the source, as hints: a
`ReduceLROnPlateau` that is told a number counted over a rank's own share; and a rate that the script sets, or a
function of its schedule returns, from this rank's own clock, from its own samples, or on some ranks only.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING

from grader.checks.phrases import count, listed, place
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.checks.source.calls.arguments import arguments_of
from grader.checks.source.causes import CauseInText, lines
from grader.checks.source.collectives.reduction_fixes import for_all_ranks
from grader.checks.source.collectives.reduction_results import reductions
from grader.checks.source.data.loader_sharding import Shared
from grader.checks.source.optimisation.rate_causes import (
    ONE_RATE,
    rates_apart,
    rates_under_tests,
    setting_of_the_rank,
    values_of_own,
)
from grader.checks.source.script import UNKNOWN, Script
from grader.checks.source.syntax.nodes import LOOPS, name_of, walk
from grader.model.finding import Severity
from grader.model.precondition import Precondition

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence
    from grader.checks.run.optimisation.apart_settings import ApartSetting
    from grader.model.trace import RankTrace

SEVERITY = Severity.ERROR
NEEDS = Precondition.GROUP
EXPLAINED_BY = ("DIST001", "DATA005")
_PLATEAU = "torch.optim.lr_scheduler.ReduceLROnPlateau"
_AGREE = (
    "Steer the schedule by a number that all ranks share: `dist.all_reduce` the metric (and divide by the count of all "
    "ranks) before `scheduler.step(metric)`."
)


def check_source(script: Script) -> Iterable[Hit]:
    """Flag plateau schedules that are told a number of the rank's own share, and rates set by such numbers."""
    if not script.joins_group or script.training.framework:
        return
    for cause in values_of_own(script):
        yield Hit(
            message=f"{cause.says} Where ranks step with different rates, their weights part ways.",
            hint=cause.hint,
            where=lines(script, cause.nodes),
            severity=Severity.HINT,
        )
    for call, told in _steered(script):
        if not _own(script, told):
            continue
        yield Hit(
            message=f"{script.at(call)} steers the learning rate by {script.quote(told)}, which each rank has counted "
            "over its own share. Where one rank lowers its rate and another does not, their weights part ways.",
            hint=_AGREE,
            where=(script.location(call),),
            severity=Severity.HINT,
        )


def _steered(script: Script) -> Iterable[tuple[ast.Call, ast.expr]]:
    """Steps of plateau schedules, each with the number that it is told."""
    for call in script.called("step"):
        if isinstance(call.func, ast.Attribute):
            told = call.args[0] if call.args else script.argument(call, "metrics")
            built = [o for o in script.values.origins(call.func.value) if isinstance(o, ast.Call)]
            plateau = any(script.names.qualified(o.func) == _PLATEAU for o in built)
            if plateau and told is not None and told is not UNKNOWN:
                yield call, told


def _on_one_rank(script: Script, told: ast.expr) -> Iterable[tuple[ast.Call, ast.expr]]:
    """Reductions to one rank in the functions that a number comes from, with their tensors."""
    parts = script.values.closure(told)
    through = {script.names.tree(p).function(p) for p in parts if isinstance(p, ast.expr | ast.stmt)} - {None}
    for call, name, tensor in reductions(script):
        if name == "reduce" and script.names.tree(call).function(call) in through:
            yield call, tensor


def _own(script: Script, told: ast.expr) -> bool:
    """Whether a number was counted in a loop over one rank's share and never brought together."""
    parts = script.values.closure(told)
    counted = {name for draw in script.training.draws for name in script.reductions.counted(draw)}
    names = {name_of(p) for p in parts if isinstance(p, ast.Name | ast.Attribute)} & counted
    names |= {name_of(p) for p in walk(told) if isinstance(p, ast.Name | ast.Attribute)}
    for call in script.all_calls():
        if script.reductions.reduces(call) or name_of(call).startswith("broadcast"):
            given = [n for a in arguments_of(call) for n in script.values.closure(a)]
            if call in parts or names & {
                name_of(n) for n in given if isinstance(n, ast.Name | ast.Attribute)
            }:
                return False
    for draw in script.training.draws:
        shared = any(script.sharding.of(loader) is Shared.YES for loader in draw.loaders)
        if not shared:
            continue
        tree, grown = script.names.tree(draw.loop), script.reductions.counted(draw)
        scope = tree.scope(draw.loop)
        for part in parts:
            if (
                isinstance(part, ast.Name)
                and part.id in grown
                and script.names.tree(part).scope(part) is scope
            ):
                return True
            if isinstance(part, ast.expr | ast.stmt) and _inside(script, part, draw.loop):
                return True
    return False


def _inside(script: Script, node: ast.AST, loop: ast.AST) -> bool:
    tree = script.names.tree(node)
    return (
        isinstance(loop, LOOPS)
        and script.names.tree(loop) is tree
        and tree.inside(node, loop)
        and node is not loop
    )


def check_run(evidence: Evidence) -> Observation:
    """Flag steps at which ranks had different rates, or other settings."""
    from grader.checks.run.models.replica_comparison import in_parts_by_hand, sharded
    from grader.checks.run.optimisation.apart_settings import apart_setting
    from grader.checks.run.optimisation.learning_rates import same
    from grader.checks.run.optimisation.step_moments import first_apart
    from grader.model.run import Ending

    ranks = evidence.trace.trainers
    if len(ranks) < 2:
        return not_observable("Fewer than two ranks took optimizer steps.")
    if sharded(evidence.trace) and len({len(s.lr) for r in ranks for s in r.steps[:1]}) > 1:
        return not_observable("Each rank's optimizer holds its own part of the parameters.")
    counts = {len(r.steps) for r in ranks}
    if len(counts) > 1 and evidence.record.ending is Ending.COMPLETED:
        return not_observable(
            "Ranks took different numbers of steps, so that equal numbers are not the same step."
        )
    first = ranks[0]
    compared, together = 0, first_apart(ranks)
    for step, *others in zip(*(r.steps[:together] for r in ranks), strict=False):
        compared += 1
        for rank, other in zip(ranks[1:], others, strict=True):
            alike = (step.optimizer, step.kind, len(step.lr)) == (other.optimizer, other.kind, len(other.lr))
            if alike and not same(step.lr, other.lr):
                return flagged(_hit(evidence.script, first, rank, compared - 1))
    apart = None if in_parts_by_hand(evidence.trace) else apart_setting(ranks, together)
    if apart is not None:
        return flagged(_hit_of_setting(evidence.script, apart))
    if together is not None:
        return not_observable(
            f"From step {together} on ranks took their steps in different iterations, so that equal numbers are not "
            "the same step."
        )
    return verified(f"All ranks stepped with the same learning rate in each of {count(compared, 'step')}.")


def _hit(script: Script, first: RankTrace, other: RankTrace, at: int) -> Hit:
    from grader.checks.run.optimisation.learning_rates import same

    a, b = first.steps[at], other.steps[at]
    group = next(n for n, (x, y) in enumerate(zip(a.lr, b.lr, strict=True)) if not same((x,), (y,)))
    differing = sum(not same(x.lr, y.lr) for x, y in zip(first.steps, other.steps, strict=False))
    built = [e for r in (first, other) for e in r.events("lr_scheduler")]
    kinds = sorted({str(e.fields.get("kind")) for e in built})
    by = f" The rate is set by {listed(f'`{k}`' for k in kinds)}." if kinds else ""
    plateau = [e for e in built if e.fields.get("kind") == "ReduceLROnPlateau"]
    cause = _cause(script, bool(plateau))
    return Hit(
        message=f"At step {a.n} rank {first.rank} stepped with a learning rate of {a.lr[group]:.4g} and rank "
        f"{other.rank} with {b.lr[group]:.4g}; rates differed in {count(differing, 'step')} of "
        f"{len(first.steps):,}.{by}{cause.says and f' {cause.says}'} Equal gradients then move the weights "
        "differently, and the replicas are no longer one model.",
        hint=cause.hint,
        where=lines(script, cause.nodes) or (place((plateau or built)[0].site) if built else place(a.site)),
        ranks=(first.rank, other.rank),
        details={"step": a.n, "rates": {str(first.rank): list(a.lr), str(other.rank): list(b.lr)}},
        fix=cause.fix,
    )


def _hit_of_setting(script: Script, apart: ApartSetting) -> Hit:
    from grader.checks.run.optimisation.learning_rates import optimizer_places

    cause = setting_of_the_rank(script, apart.name)
    (a, b), (x, y) = apart.ranks, map(_written, apart.values)
    return Hit(
        message=f"At step {apart.step.n} rank {a} stepped with `{apart.name}` {x} and rank {b} with {y}."
        f"{cause.says and f' {cause.says}'} Equal gradients then move the weights of each rank in another way, and of "
        "a model in shards each part is trained by other rules.",
        hint=cause.hint,
        where=lines(script, cause.nodes) or optimizer_places(script) or place(apart.step.site),
        ranks=apart.ranks,
        details={"step": apart.step.n, "setting": apart.name, "values": list(apart.values)},
        fix=cause.fix,
    )


def _written(value: object) -> str:
    if isinstance(value, list):
        return f"({', '.join(map(_written, value))})"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _cause(script: Script, plateau: bool) -> CauseInText:
    """What parts the ranks' rates; without a line where the text does not show it."""
    made = next(rates_apart(script), None)
    steered = next(iter(_steered(script)), None) if plateau and made is None else None
    if made is not None or steered is None:
        seen = None if plateau else next(rates_under_tests(script), None)
        return made or seen or CauseInText((), "", _AGREE if plateau else ONE_RATE)
    step, told = steered
    said = f"{script.at(step)} steers it by {script.quote(told)}, of which each rank has a value of its own."
    rooted = next(iter(_on_one_rank(script, told)), None)
    if rooted is None:
        return CauseInText((step,), said, _AGREE)
    call, tensor = rooted
    written, fix = for_all_ranks(script, call, tensor)
    return CauseInText(
        (call, step),
        f"{said} {script.at(call)} leaves the sum on one rank: {script.quote(call)}.",
        f"Write `{written}` at {script.at(call)}: every rank then steps the schedule by the same number.",
        fix,
    )
