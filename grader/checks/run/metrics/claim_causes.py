"""Why a reported metric is not that of the saved weights, where no change of the scoring explains it.

The text and what was reported of all epochs tell; both only once the scorer has found that the report is wrong.
"""

from __future__ import annotations

from itertools import chain, pairwise
from math import log

from grader.checks.evidence import Evidence
from grader.checks.phrases import count, listed
from grader.checks.run.metrics.metric_claims import MetricClaim
from grader.checks.run.metrics.other_networks import other_network
from grader.checks.run.metrics.validation_passes import evaluated
from grader.checks.source.data.foretold_symbols import foretold_symbols
from grader.checks.source.metrics.recorded_losses import Cause
from grader.checks.source.metrics.score_causes import fillings, score_cause

_FEWEST_EPOCHS = 3
_SAME_UNIT = 0.005
"""How far a figure may be from that many times another which is in another unit."""
_NEARLY = 0.02
"""How far a count may be from a whole number."""


def claim_cause(evidence: Evidence, claim: MetricClaim, allowed: float) -> Cause | None:
    """The likeliest cause; None where nothing shows one. `allowed`: how far a right report may be off."""
    names = (claim.metric.reported_as, claim.metric.name)
    filled = _filled_up(evidence, claim)
    if filled is not None:
        return filled
    if (other := other_network(evidence)) is not None:
        return Cause(other.nodes, other.hint, f"What was saved is not what was trained: {other.says}")
    if (unit := _in_nats(claim)) is not None:
        return unit
    if (foretold := next(iter(foretold_symbols(evidence.script)), None)) is not None:
        return Cause(foretold.nodes, foretold.hint, foretold.says)
    cause = score_cause(evidence.script, names, in_blocks=_in_blocks(evidence))
    return cause if cause is not None and cause.says else _averaged(claim, allowed) or cause


def _in_nats(claim: MetricClaim) -> Cause | None:
    """A mean in torch's own unit where bits are asked for, or one that was turned into bits twice."""
    if claim.metric.share or "bit" not in claim.metric.title or claim.measured <= 0:
        return None
    times, told = claim.values[-1] / claim.measured, f"{claim.values[-1]:.4g}"
    if abs(times / log(2) - 1) < _SAME_UNIT:
        return Cause(
            (),
            "Divide by `math.log(2)`, once: torch's cross entropy takes natural logarithms.",
            f"{told} is {times:.3f} times that, which is the natural logarithm of 2: it is in nats, and bits are asked "
            "for.",
        )
    if abs(times * log(2) - 1) < _SAME_UNIT:
        return Cause(
            (),
            "Divide by `math.log(2)` once.",
            f"{told} is {times:.3f} times that, which is 1 / ln 2: nats were turned into bits twice.",
        )
    return None


def _in_blocks(evidence: Evidence) -> bool:
    """Whether what ranks scored, one rank's behind the other's, is the data set in its own order."""
    for stream in evidence.ledger.validation:
        for epoch in stream.epochs[:1]:
            drawn = list(chain.from_iterable(s.samples or () for s in epoch.shards))
            if epoch.known and len(epoch.shards) > 1:
                return drawn == list(range(len(drawn)))
    return False


def _filled_up(evidence: Evidence, claim: MetricClaim) -> Cause | None:
    """The network was given more samples than the set has, and the figure is that of all of them."""
    total, runs = claim.evaluation.num_validation, evaluated(evidence.trace)
    scored = sum(times[-1][1] for times in runs.values())
    beyond = scored - (total or 0)
    if not claim.metric.share or not total or not 0 < beyond <= total:
        return None
    right, out_of_all = claim.measured * total, claim.values[-1] * scored
    # What fills up may be counted as right, too, and no more than all of it.
    whole = abs(out_of_all - round(out_of_all)) <= _NEARLY
    if not whole or not right - _NEARLY <= out_of_all <= right + beyond + _NEARLY:
        return None
    filling = fillings(evidence.script, (claim.metric.reported_as, claim.metric.name))
    lines = listed(dict.fromkeys(map(evidence.script.at, filling)), 3)
    return Cause(
        tuple(filling[:3]),
        "Count the samples of the set alone: take what fills up the last batch or share out of right answers, loss and "
        "count, such as by a mask (`(right * mask).sum()` and `mask.sum()`), or score shares of different length.",
        f"The ranks ran {count(scored, 'sample')} through the network, {beyond:,} more than there are, and the figure "
        f"is {round(out_of_all):,} right ones of all {scored:,}: what fills up the shares was counted"
        f"{f' (filled up at {lines})' if filling else ''}.",
    )


def _averaged(claim: MetricClaim, allowed: float) -> Cause | None:
    """What is reported is the mean over all epochs so far: taken apart, the last epoch has the score."""
    values = claim.values
    if len(values) < _FEWEST_EPOCHS:
        return None
    sums = [0.0, *(number * value for number, value in enumerate(values, start=1))]
    own = [after - before for before, after in pairwise(sums)]
    possible = not claim.metric.share or all(-allowed <= value <= 1 + allowed for value in own)
    if not possible or abs(own[-1] - claim.measured) > allowed:
        return None
    return Cause(
        (),
        "Make what is counted in the validation pass anew in each epoch, or set it back to 0 before the pass.",
        f"As a mean over all epochs so far the values fit: the last epoch alone then has {own[-1]:.4g}.",
    )
