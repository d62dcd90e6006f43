"""What the losses of a run's first backward passes were made of: how they reduce, and what they were multiplied by."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import fmean, median

from grader.model.call_site import Site
from grader.model.trace import Trace

_LOOKED_AT = 8
_OVER_LABELS = "NllLoss"


@dataclass(frozen=True, slots=True)
class LossOrigin:
    """One and the same in all backward passes that were looked at.

    Attributes:
        function: of autograd, that made it (`NllLoss`).
        reduction: over the samples of a batch: `mean`, `sum` or "".
        factor: how many times its own gradients go backward: what it was multiplied by afterwards, and once for each
            rank whose losses a collective that gradients pass through has added up.
        summed: how many ranks these are; 1 without such a collective.
        site: of the backward pass.
        num_backwards: backward passes for each of the first steps; 0 where these differ.
        batches_each: whether each of these had a batch of its own.
    """

    function: str
    reduction: str
    factor: float
    summed: int
    site: Site | None
    num_backwards: int
    batches_each: bool


def loss_origin(trace: Trace) -> LossOrigin | None:
    """What all ranks' losses were made of; None where that is not known, or is not one and the same."""
    found = {
        (
            str(e.fields.get("function", "")),
            str(e.fields.get("reduction", "")),
            _number(e.fields.get("factor")),
            _ranks(e.fields.get("summed")),
            e.site,
        )
        for r in trace.ranks
        for e in r.events("backward")
    }
    if len(found) != 1:
        return None
    ((function, reduction, factor, summed, site),) = found
    if not function or not math.isfinite(factor):
        return None
    # An epoch's end may leave a batch over, so that a later step has one more.
    steps = [(r, s) for r in trace.ranks for s in r.steps if s.n < _LOOKED_AT]
    counts = {s.backwards for _, s in steps}
    batches = {sum(b.step == s.n for b in r.batches) for r, s in steps}
    number = counts.pop() if len(counts) == 1 else None
    return LossOrigin(function, reduction, factor * summed, summed, site, number or 0, batches == {number})


def times_the_mean(trace: Trace, made: LossOrigin) -> float:
    """How many times the mean over a rank's own batch goes backward in a step; NaN where that is not told.

    Micro-batches whose sums go backward add up to the sum over the batch, and parts of their means to as much of its
    mean. Parts that make more than one mean were divided by another number than theirs, whatever that was.
    """
    if made.reduction == "mean":
        whole = made.factor * made.num_backwards
        if made.num_backwards == 1 or made.factor >= 1:
            return made.factor
        return whole if 0 < whole <= 1 else math.nan
    measured = _measured(trace, made)
    if math.isfinite(measured):
        return measured
    sizes = [s.samples for r in trace.ranks for s in r.steps if s.n < _LOOKED_AT and s.samples]
    return made.factor * median(sizes) if made.reduction == "sum" and sizes else math.nan


def _measured(trace: Trace, made: LossOrigin) -> float:
    """The same of sums over labels, by what went backward and the mean over all labels that was measured beside it.

    A text has many labels for each sample, and ranks may have unequal numbers of them: over the ranks it is the mean.
    """
    if made.function != _OVER_LABELS or made.num_backwards != 1 or made.summed > 1:
        return math.nan
    found = []
    ranks = [r for r in trace.ranks if r.steps]
    losses = [{s.n: s.loss for s in r.steps if s.loss is not None} for r in ranks]
    means = [{e.fields.get("n"): e.fields.get("means") for e in r.events("cross_entropies")} for r in ranks]
    for n in range(_LOOKED_AT):
        parts = []
        for loss, mean in zip(losses, means, strict=True):
            beside = mean.get(n)
            one = _number(beside[0]) if isinstance(beside, list) and len(beside) == 1 else math.nan
            parts.append(loss.get(n, math.nan) / one if one > 0 else math.nan)
        if parts and all(map(math.isfinite, parts)):
            found.append(fmean(parts))
    return median(found) if found else math.nan


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else math.nan


def _ranks(value: object) -> int:
    return value if isinstance(value, int) and value > 1 else 1
