"""The learning rate does not fit the global batch.

## What it finds
Where a task asks for it: a peak learning rate that did not follow the batch of all ranks together, or that was raised
although this batch stayed as it was.

## Why it matters
k ranks with n samples each take steps on k · n samples. Their gradient is less noisy, so each step may be larger: by k
(the linear rule) or by √k. With the old rate training is slower per sample than it could be; with a rate raised twice
it diverges.

## Example
```python
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(build_model())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)  # 0.1 was meant for one process with 64 samples
loader = make_loader(batch_size=64)  # on each of 8 ranks
dist.destroy_process_group()
```

## Use instead
```python
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(build_model())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1 * dist.get_world_size())
loader = make_loader(batch_size=64)
dist.destroy_process_group()
```

## How it is seen
In the run alone, and only where the task names a rate to start from: by the largest learning rate that the optimizer
stepped with and the samples of all ranks per step. Where groups of parameters have rates of their own, that of most
elements counts if it is still the old one; rates that differ from layer to layer are fine. A rate between those of the
rules is fine, unless it is one rank's by its digits and the text makes it of that rank's batch, or grew by the number
of ranks and the text says so. Where it was the right one in the first step alone, the text is asked for a schedule that
was built before the rate was scaled, and so sets it back to its own. Only plain SGD follows such a rule, so nothing is
said of others.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from math import sqrt
from typing import TYPE_CHECKING

from grader.checks.phrases import count, listed, share, told_once
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.checks.source.causes import lines, passed_world, rate_of_group, rates_by_world
from grader.checks.source.data.batch_causes import Miscounted, rate_of_own_batch
from grader.checks.source.optimisation.optimisation_fixes import rate_once
from grader.checks.source.optimisation.set_back_rates import set_back_rate
from grader.model.finding import Severity

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence
    from grader.checks.run.optimisation.learning_rates import LearningRateCurve

SEVERITY = Severity.HINT
EXPLAINED_BY = ("DIST001", "DIST006", "GRAD001", "GRAD003", "OPT003", "OPT005", "OPT006")
_MARGIN = 0.6
"""Rates within this factor of an allowed one are a matter of taste."""
_GROWN = 1.4
"""A batch this many times the old one has grown."""
_SAME = 0.05
"""Two rates this close are one."""
_RULES = {"linear": lambda k: k, "sqrt": sqrt}


def check_run(evidence: Evidence) -> Observation:
    """Compare the peak rate with what the task's rules give for the batch that was used."""
    from grader.checks.run.optimisation.learning_rates import batches, curve, endless_warm_up, set_back
    from grader.model.run import Ending

    asked = evidence.expected
    if not asked.scaling or asked.base_learning_rate is None or asked.base_batch_size is None:
        return verified("The task does not ask for a rate that follows the batch.")
    ranks = evidence.trace.trainers
    curves = [c for r in ranks if (c := curve(r)) is not None]
    total = sum(batches(evidence.trace).values())
    if not curves or not total:
        return not_observable("Learning rates or batch sizes of the training ranks were not seen.")
    first = curves[0]
    if first.kind != "SGD":
        return not_observable(
            f"The rules for the learning rate are SGD's; this run stepped with {first.kind}."
        )
    factor = total / asked.base_batch_size
    allowed = {name: _RULES[name](factor) for name in asked.scaling}
    low, high = _MARGIN * min(allowed.values()), max(allowed.values()) / _MARGIN
    of_most = first.of_most / asked.base_learning_rate
    left = len(set(first.peaks)) == 2 and first.of_most < first.peak and abs(of_most - 1) < _SAME
    scale = of_most if left or low <= of_most <= high else first.peak / asked.base_learning_rate
    peak = scale * asked.base_learning_rate
    rates = {name: f"{asked.base_learning_rate * a:.3g}" for name, a in allowed.items()}
    fits = " or ".join(f"{rate} ({name})" for name, rate in rates.items())
    if len(set(rates.values())) == 1:
        fits = next(iter(rates.values()))
    told = (
        f"Steps took {count(total, 'sample')} over all ranks, {factor:.3g} × the {asked.base_batch_size:,} that the "
        f"rate {asked.base_learning_rate:g} belongs to"
    )
    if scale > high:
        why = f"but the rate rose to {peak:.3g}: {fits} fits this batch. Steps that are too large can make"
        hit = _hit(evidence, f"{told}, {why} training diverge.")
        too_often = (
            n for n in (1, 2) for a in allowed.values() if abs(scale / a / len(ranks) ** n - 1) < _SAME
        )
        times = next(too_often, 0) if len(ranks) > 1 else 0
        return flagged(_without(evidence, hit, times) if times else hit)
    if long := endless_warm_up(evidence.trace):
        return not_observable(f"A warm-up of {long[0]:,} steps never let the rate come to its peak.")
    own = _of_own_batch(evidence, scale, allowed)
    if own is not None:
        node, part = evidence.script.at(own.node), evidence.script.quote(own.part)
        why = (
            f"but the rate's peak was {peak:.3g}, made of one rank's batch by {part} at {node}: {fits} fits. "
        )
        hit = _hit(
            evidence, f"{told}, {why}With another number of ranks the same batch would get another rate."
        )
        where = (*lines(evidence.script, [own.node]), *hit.where)
        return flagged(
            replace(hit, hint=f"Take the batch of all ranks: `{own.written}`.", fix=own.fix, where=where)
        )
    if by_ranks := _by_ranks(evidence, scale, allowed):
        why = f"but the rate's peak was {peak:.3g}, {len(ranks)} × the old one, as there are ranks: "
        hit = _hit(
            evidence, f"{told}, {why}{fits} fits. With another number of ranks it would be another rate."
        )
        hint = f"Scale it by what the batch of all ranks has grown, {factor:.3g}, and not by the number of ranks."
        passed = list(passed_world(evidence.script, by_ranks))
        if passed:
            hint += f" {evidence.script.quote(passed[0])} at {evidence.script.at(passed[0])} is where that comes from."
        return flagged(replace(hit, hint=hint, where=lines(evidence.script, (*by_ranks, *passed))))
    # A smaller rate on the old batch is the learner's own choice.
    if scale < low and factor > _GROWN:
        if evidence.record.ending is not Ending.COMPLETED:
            return not_observable("The run ended before its learning rate had reached its peak.")
        if left:
            return flagged(_left_hit(evidence, first, told, fits))
        late = set_back_rate(evidence.script) if set_back(first) else None
        if late is not None:
            a, b = first.rates[:2]
            why = f"but the rate never rose above {peak:.3g}: {fits} fits this batch. It fell from {a:.3g} in the first"
            hit = _hit(evidence, f"{told}, {why} step to {b:.3g} in the second, {b / a:.0%}: {late.says}")
            where = (*lines(evidence.script, late.nodes), *hit.where)
            return flagged(replace(hit, hint=late.hint, where=told_once(where)))
        why = f"but the rate never rose above {peak:.3g}: {fits} fits this batch. Steps on so many samples"
        return flagged(_hit(evidence, f"{told}, {why} are less noisy and may be larger."))
    return verified(f"{told}, and the rate's peak of {peak:.3g} fits them.")


def _left_hit(evidence: Evidence, first: LearningRateCurve, told: str, fits: str) -> Hit:
    """Most of the model kept the old rate, and a few parameters alone got another one."""
    kept = [n for n, peak in enumerate(first.peaks) if peak == first.of_most]
    part = share(sum(first.elements[n] for n in kept), sum(first.elements))
    groups = listed(str(n + 1) for n in kept)
    hit = _hit(
        evidence,
        f"{told}, but {part} of the model's elements kept the old rate, {first.of_most:.3g}: those of parameter "
        f"group{'s' if len(kept) > 1 else ''} {groups} of {len(first.peaks)}. {fits} fits this batch, and only the "
        f"others came to {first.peak:.3g}.",
    )
    given = [v for n in kept if (v := rate_of_group(evidence.script, n)) is not None]
    named = f" ({evidence.script.quote(given[0])} at {evidence.script.at(given[0])} doesn't)" if given else ""
    return replace(
        hit,
        hint=f"Let the rate of every group follow the batch of all ranks{named}: a group's own `lr` goes before that "
        "of the optimizer.",
        where=(*lines(evidence.script, given), *hit.where),
    )


def _by_ranks(evidence: Evidence, scale: float, allowed: dict[str, float]) -> list[ast.AST]:
    """What multiplies the rate by the number of ranks, where that is what it grew by and no rule gives that."""
    if abs(scale / len(evidence.trace.trainers) - 1) >= _SAME:
        return []
    if any(abs(scale / a - 1) < _SAME for a in allowed.values()):
        return []
    return list(rates_by_world(evidence.script))


def _of_own_batch(evidence: Evidence, scale: float, allowed: dict[str, float]) -> Miscounted | None:
    """What made the rate of one rank's batch, where run and text say so, and no rule gives that rate."""
    from grader.checks.run.optimisation.learning_rates import batches

    base, sizes = evidence.expected.base_batch_size, set(batches(evidence.trace).values())
    if len(batches(evidence.trace)) < 2 or len(sizes) != 1 or not base:
        return None
    given = [_RULES[name](next(iter(sizes)) / base) for name in allowed]
    near = any(abs(scale / a - 1) < _SAME for a in allowed.values())
    if near or not any(abs(scale / a - 1) < _SAME for a in given):
        return None
    return rate_of_own_batch(evidence.script, base)


def _without(evidence: Evidence, hit: Hit, times: int) -> Hit:
    """The same, where the text multiplies the rate by the number of ranks once or twice too often."""
    written, fix = rate_once(evidence.script, times)
    hint = f"{written}: the number of ranks has been counted already."
    return replace(hit, hint=hint, fix=fix) if written else hit


def _hit(evidence: Evidence, message: str) -> Hit:
    from grader.checks.run.optimisation.learning_rates import batches, optimizer_places

    return Hit(
        message=message,
        hint="Let the rate follow the batch of all ranks: `lr = base_lr * (batch_size * dist.get_world_size()) / "
        "base_batch_size`; leave it alone where each rank takes `base_batch_size // world_size` samples.",
        where=lines(evidence.script, rates_by_world(evidence.script)) or optimizer_places(evidence.script),
        details={"batch_by_rank": {str(r): b for r, b in batches(evidence.trace).items()}},
    )
