"""Whether what ranks step on came of what their own backward passes gave, and of samples of their own.

Of a few parameters the probe knows both at the steps that it looks at. Averaging, clipping, scaling, accumulating and
compressing all leave what is stepped on in step with what was given; numbers that were made up are not. Sentences for
staff about what honest training cannot look like; "" where nothing is odd or nothing can be said.
"""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from itertools import combinations
from statistics import fmean, median

from grader.checks.evidence import Evidence
from grader.checks.phrases import count
from grader.checks.phrases import ranks as ranks_of
from grader.checks.run.endings.end_counts import gradients_computed
from grader.checks.run.gradients.exchanges import MEETINGS
from grader.checks.run.gradients.own_gradients import (
    FEWEST_STEPS,
    AveragedStep,
    averaged_steps,
    averaging_ranks,
)
from grader.checks.run.models.equal_sums import equal
from grader.model.call_site import Site
from grader.model.trace import RankTrace, Step

_UNRELATED = 0.35
"""Correlation below which what is stepped on has nothing to do with what was given: it is 1 where gradients are
averaged or scaled, and stays above one half where they are clipped or rounded to their signs."""
_LATE = 0.9
"""Correlation with what the step before was given, of those who average one step late; noise has none."""
_FEWEST_PAIRS = 5
"""Of steps that were looked at and come one after the other: the first ones do."""
_MOSTLY = 0.8
_MUCH_MORE = 0.5
"""Of the number of steps: gradients that one rank may compute for itself, to look at a few samples or to try rates."""
_UNTOLD = 63
"""Calls of one line that may follow the last one that was told of (COLLECTIVE in `probe.events`)."""


def made_up(evidence: Evidence) -> str:
    """Gradients that are stepped on and that no backward pass gave."""
    ranks = averaging_ranks(evidence)
    looks = list(averaged_steps(ranks))
    # Gradients that nobody clears hold those of earlier steps, too, and cleared ones hold nothing: both are errors that
    # a rule of its own tells, and both say nothing of where what is stepped on came from.
    piled_up = {name for rank in ranks for step in rank.steps for name in step.kept}
    related = []
    for number in range(max((len(look.steps[0].grad_names) for look in looks), default=0)):
        fresh = [look for look in looks if _is_fresh(look.steps[0], number, piled_up)]
        if len(fresh) >= FEWEST_STEPS:
            related.append(_relations(fresh, number))
    found = max(map(fmean, zip(*related, strict=True)), default=1.0)
    if found >= _UNRELATED or _one_step_late(looks):
        return ""
    return (
        f"At {count(len(looks), 'step')} that were looked at, the gradients that "
        f"{ranks_of(r.rank for r in ranks).lower()} stepped on had nothing to do with those that their backward passes "
        f"gave (correlation {found:.2f}; it is 1 where they are averaged)."
    )


def _one_step_late(looks: Sequence[AveragedStep]) -> bool:
    """Whether each step is taken with what was given for the one before: averages that travel while others compute."""
    by_number = {look.n: look for look in looks}
    pairs = [(look.steps[0].grads or (), by_number[look.n - 1]) for look in looks if look.n - 1 in by_number]
    if len(pairs) < _FEWEST_PAIRS:
        return False
    return (
        fmean(
            _correlated(
                [grads[number] or 0.0 for grads, _ in pairs],
                [fmean((step.own or ())[number] or 0.0 for step in before.steps) for _, before in pairs],
            )
            for number in range(min(len(grads) for grads, _ in pairs))
        )
        >= _LATE
    )


def _is_fresh(step: Step, number: int, piled_up: Container[str]) -> bool:
    grads = step.grads or ()
    return number < len(grads) and bool(grads[number]) and step.grad_names[number] not in piled_up


def _relations(looks: Sequence[AveragedStep], number: int) -> tuple[float, ...]:
    """How what was stepped on for a parameter goes with what was given: in four ways, of which the best one counts.

    By all ranks, or by one alone where weights are averaged instead; all of it, or the last pass where others only
    prepared it.
    """
    stepped = [(look.steps[0].grads or ())[number] or 0.0 for look in looks]
    whole = [[(step.own or ())[number] or 0.0 for step in look.steps] for look in looks]
    last = [[(step.own_last or ())[number] or 0.0 for step in look.steps] for look in looks]
    return tuple(
        _correlated(stepped, given)
        for own in (whole, last)
        for given in ([fmean(of_ranks) for of_ranks in own], [of_ranks[0] for of_ranks in own])
    )


def not_of_own_samples(evidence: Evidence) -> str:
    """Ranks that drew different samples and stepped on what each had computed by itself, which was the very same."""
    ranks = averaging_ranks(evidence)
    drawn = [_drawn(rank) for rank in ranks]
    looks = [
        look
        for look in averaged_steps(ranks)
        if all(one.get(look.n) for one in drawn) and not frozenset.intersection(*(d[look.n] for d in drawn))
    ]
    same = [look for look in looks if all(_by_itself(step, look.steps[0]) for step in look.steps)]
    if len(looks) < FEWEST_STEPS or len(same) < _MOSTLY * len(looks):
        return ""
    if all(map(_meets_going_backward, ranks)) and sum(map(_losses_differ, same)) >= _MOSTLY * len(same):
        return ""
    return (
        f"{ranks_of(r.rank for r in ranks)} drew different samples, and at {len(same)} of "
        f"{count(len(looks), 'step')} that were looked at each stepped on a gradient that it had computed by itself, "
        "the very same on all of them: it did not come from what they drew."
    )


def _meets_going_backward(rank: RankTrace) -> bool:
    """Whether something is brought together on the way back of each step.

    An `autograd.Function` around the weights may average so: what a parameter is given then is the mean already, and no
    look at a parameter tells it from what the rank computed by itself.
    """
    last: dict[tuple[str, Site | None], int] = {}
    for call in rank.collectives:
        if call.backward and call.name not in MEETINGS:
            last[call.name, call.site] = call.n
    calls = sum(n + _UNTOLD if n > _UNTOLD else n for n in last.values())
    return calls >= len(rank.steps)


def _losses_differ(look: AveragedStep) -> bool:
    """Whether each rank's loss is its own, as with samples of its own."""
    losses = [step.loss for step in look.steps]
    return None not in losses and not any(equal((a,), (b,)) for a, b in combinations(losses, 2))


def of_one_rank_more(evidence: Evidence) -> str:
    """A rank that computed gradients beyond those of the steps that it took with all others."""
    ranks = [rank for rank in averaging_ranks(evidence) if rank.ended]
    steps = {len(rank.steps) for rank in ranks}
    if len(ranks) < 2 or len(steps) > 1:
        return ""
    computed = {rank.rank: gradients_computed(rank) for rank in ranks}
    most, fewest = max(computed, key=computed.__getitem__), min(computed, key=computed.__getitem__)
    # Who hardly computes any has no part in what is stepped on, which GRAD001 says.
    if min(computed[most] - computed[fewest], computed[fewest]) < _MUCH_MORE * max(steps):
        return ""
    return (
        f"Rank {most} computed {computed[most]:,} gradients and rank {fewest} {computed[fewest]:,}, for "
        f"{count(max(steps), 'step')} that both took: what became of the others, nothing tells."
    )


def without_steps(evidence: Evidence) -> str:
    """Weights that went on changing from gradient to gradient after the last step that was told."""
    for rank in evidence.trace.ranks:
        for event in rank.events("unstepped"):
            return (
                f"Rank {rank.rank} took {event.fields.get('gradients')} gradients after its step "
                f"{event.fields.get('n')}, and its network's weights changed among them, though nobody stepped."
            )
    return ""


def met_when_watched(evidence: Evidence) -> str:
    """Exchanges at the steps that are looked at, and none at the others."""
    ranks = averaging_ranks(evidence)
    # What one rank trains by itself beside the others is for GRAD001 to say.
    shared = [{step.optimizer for step in rank.steps} for rank in ranks]
    for rank in ranks:
        own = [step for step in rank.steps if all(step.optimizer in optimizers for optimizers in shared)]
        seen = [(bool(step.grads), step.exchanges) for step in own if step.exchanges is not None]
        watched, others = ([n for looked, n in seen if looked is which] for which in (True, False))
        usual = median(watched) if watched else 0
        if min(len(watched), len(others)) < FEWEST_STEPS or not usual:
            continue
        silent = sum(n < usual / 2 for n in others)
        # Whoever averages every other step is silent at half of those that are looked at, too.
        if silent >= _MOSTLY * len(others) and sum(n >= usual / 2 for n in watched) > len(watched) / 2:
            return (
                f"Rank {rank.rank} exchanged something {usual:g} times at each of {len(watched)} steps that "
                f"were looked at, and less than half of it at {silent:,} of {count(len(others), 'other step')}."
            )
    return ""


def _by_itself(step: Step, first: Step) -> bool:
    """Whether it is stepped on what the rank's last backward pass gave, and that is what the first rank's gave."""
    own, others = step.own_last or (), first.own_last or ()
    return equal(step.grads or (), own) and equal(own, others) and any(own)


def _correlated(a: Sequence[float], b: Sequence[float]) -> float:
    """Of two series; 1 where both never move, 0 where only one does."""
    a_off, b_off = ([x - fmean(series) for x in series] for series in (a, b))
    a_size, b_size = math.hypot(*a_off), math.hypot(*b_off)
    a_still, b_still = a_size <= 1e-9 * math.hypot(*a), b_size <= 1e-9 * math.hypot(*b)
    if a_still or b_still:
        return float(a_still == b_still)
    return sum(x * y for x, y in zip(a_off, b_off, strict=True)) / (a_size * b_size)


def _drawn(rank: RankTrace) -> dict[int, frozenset[int]]:
    """Indices of the batches that came before each step."""
    found: dict[int, frozenset[int]] = {}
    for batch in rank.batches:
        if batch.indices is not None:
            found[batch.step] = found.get(batch.step, frozenset()) | frozenset(batch.indices)
    return found
