"""Losses that go backward times the number of ranks, or divided by it, although gradients are averaged as well."""

from __future__ import annotations

import ast
import math

from grader.checks.evidence import Evidence
from grader.checks.phrases import at, count, place, told_once
from grader.checks.rule import Hit
from grader.checks.run.gradients.loss_origins import LossOrigin, loss_origin, times_the_mean
from grader.checks.source.causes import by_world, innermost, lines, went_backward
from grader.checks.source.gradients.shared_divisors import SharedDivisor, shared_divisors
from grader.checks.source.optimisation.optimisation_fixes import without_world
from grader.model.finding import Severity

_OFF = 1e-4
_ADAPTS = ("Adam", "NAdam", "RAdam", "RMSprop", "Adagrad", "Adadelta")
"""Optimizers that divide by the gradients' own size."""
_WITH_GRADIENTS = "torch.distributed.nn."


def scaled_loss(evidence: Evidence) -> Hit | None:
    """A mean over a rank's batch that went backward times the number of ranks, or by it, where ranks are averaged."""
    script, world = evidence.script, evidence.trace.world_size
    made = loss_origin(evidence.trace)
    wrapped = any(w.kind == "ddp" for r in evidence.trace.ranks for w in r.wraps)
    averages = wrapped or script.averaging.divided or any(a.mean for a in script.averaging.all)
    if made is None or world < 2 or not averages:
        return None
    means = times_the_mean(evidence.trace, made)
    larger = math.isclose(means, world, rel_tol=_OFF)
    smaller = math.isclose(means, 1 / world, rel_tol=_OFF)
    if made.summed > 1 and larger:
        return _added_up(evidence, made)
    shared = next(iter(shared_divisors(script)), None) if smaller and made.reduction == "sum" else None
    if shared is not None:
        return _divided_by_all(evidence, made, means, shared)
    counted = innermost(n for loss in went_backward(script) for n in by_world(script, loss))
    line = next(iter(counted), None)
    if line is None or not (larger or smaller):
        return None
    written, fix = without_world(script, [line])
    verb, change = ("multiplies", "times larger") if larger else ("divides", "times smaller")
    return Hit(
        message=f"{script.at(line)} {verb} the loss by the number of ranks: it went backward as {means:g} times "
        f"the mean over its batch. The gradients of {count(world, 'rank')} are averaged as well, so every step is "
        f"{world} {change} than one process would take with the whole batch.",
        hint=f"{written}: " * bool(written) + "the average over ranks is then the mean over the whole batch.",
        fix=fix,
        where=(script.location(line),),
        details={"factor": made.factor, "loss_function": made.function},
    )


def _divided_by_all(evidence: Evidence, made: LossOrigin, means: float, shared: SharedDivisor) -> Hit:
    """A sum over a rank's own part, divided by what all ranks have, before their gradients are averaged."""
    script, world = evidence.script, evidence.trace.world_size
    by = ast.unparse(shared.divisor)
    whole = ast.unparse(shared.node.left) if isinstance(shared.node, ast.BinOp) else ""
    written = f"`{whole} * dist.get_world_size() / {by}`" if whole else f"`{by} / dist.get_world_size()`"
    adapts = all(s.kind.startswith(_ADAPTS) for r in evidence.trace.ranks for s in r.steps)
    return Hit(
        message=f"{script.at(shared.node)} divides the loss by `{by}`, that of all ranks together: it went backward as "
        f"{means:.4g} times the mean over the rank's batch. The gradients of {count(world, 'rank')} are averaged as "
        f"well, which divides by {world} once more: they are {world} times smaller than those of one process with the "
        "whole batch."
        + (" Adam's steps hardly depend on that; clipping, or another optimizer, would." if adapts else ""),
        hint=f"{written}: the average over ranks takes that factor back, and unequal batches count rightly.",
        where=(script.location(shared.node),),
        details={"times_the_mean": means, "loss_function": made.function},
        severity=Severity.HINT if adapts else None,
    )


def _added_up(evidence: Evidence, made: LossOrigin) -> Hit:
    """A collective that gradients pass through, between a loss and its backward pass."""
    script = evidence.script
    parts = {part for loss in went_backward(script) for part in (loss, *script.values.closure(loss))}
    calls = [
        c for name, c in script.calls_under(_WITH_GRADIENTS) if name.endswith(".all_reduce") and c in parts
    ]
    own = ast.unparse(calls[0].args[0]) if len(calls) == 1 and calls[0].args else ""
    written = f"`{own}`, " if own else ""
    return Hit(
        message=f"{script.at(calls[0]) if calls else at(made.site)} adds up the loss over {count(made.summed, 'rank')} "
        "on its way to `backward`, with a collective that gradients pass through: its own backward pass adds up over "
        "the ranks once more, and then the ranks' gradients are averaged as well. Every step is "
        f"{made.summed} times larger than one process would take with the whole batch.",
        hint=f"Go backward from the rank's own loss, {written}and leave the ranks to the average of gradients. To "
        "report the loss of all ranks, add up a detached copy once per epoch: `dist.all_reduce(total)`.",
        where=told_once((*lines(script, calls), *place(made.site))),
        details={"factor": made.factor, "loss_function": made.function},
    )
