"""Which line made the ranks' models differ: read from a second look, in which each line's changes were told.

Weights and gradients are compared as states: the last one that two ranks had in common is found, and what either of
them did next is to blame. So it does not matter by which call, in whose style, or how often something was changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from grader.checks.evidence import Evidence
from grader.checks.run.models.equal_sums import equal
from grader.checks.run.models.first_difference import GRADIENTS, WEIGHTS, FirstDifference, Manner
from grader.checks.run.optimisation.step_moments import first_apart, passes_at_steps
from grader.model.call_site import Site
from grader.model.line_change import LineChange
from grader.model.trace import RankTrace

_MAX_STATES = 256
_SAME_FACTOR = 0.01


@dataclass(frozen=True, slots=True)
class Scale:
    """How the gradients that were stepped on relate to the mean of what the ranks computed.

    Attributes:
        factor: by how much they are larger than the mean. site: the line that made them so, None unknown.
    """

    factor: float
    site: Site | None


def first_difference(evidence: Evidence) -> FirstDifference | None:
    """The line that first made two ranks' models differ; None without a second look, or where it can't tell."""
    if evidence.second_look is None:
        return None
    ranks = [r for r in evidence.second_look.ranks if r.line_changes]
    for other in ranks[1:]:
        weights = _weights_differ(ranks[0], other)
        gradients = _gradients_differ(ranks[0], other)
        # A step over gradients that differ makes weights differ: then the gradients were first.
        if gradients is not None and (weights is None or weights.change.step > gradients.change.step):
            return gradients
        if weights is not None:
            return weights
    return None


def scale(evidence: Evidence) -> Scale | None:
    """By how much an average made by hand is off, in a second look's first step; None where that can't be told."""
    second = evidence.second_look
    ranks = [r for r in second.ranks if r.line_changes] if second is not None else []
    if len(ranks) < 2 or any(r.wraps for r in ranks):
        return None
    states = [_gradient_states(r, 0) for r in ranks]
    shared = [
        i
        for i, one in enumerate(states[0])
        if all(any(_equal(one, s) for s in other) for other in states[1:])
    ]
    if not shared or not _equal(states[0][-1], states[1][-1]):
        return None
    own = [_before_exchange(r, s) for r, s in zip(ranks, states, strict=True)]
    if any(one is None for one in own):
        return None
    mean = [
        None if any(x is None for x in column) else sum(x for x in column if x is not None) / len(own)
        for column in zip(*(one.sums for one in own if one is not None), strict=True)
    ]
    factor, site = None, None
    for i in shared:
        now = _factor(states[0][i].sums, mean)
        if now is not None and (factor is None or abs(now - factor) > _SAME_FACTOR * abs(factor)):
            factor, site = now, states[0][i].site
    return Scale(factor, site) if factor is not None else None


def _factor(sums: Sequence[float | None], mean: Sequence[float | None]) -> float | None:
    """By how much the sums are the mean's, where all of them agree on it."""
    largest = max((abs(m) for m in mean if m is not None), default=0.0)
    ratios = [
        s / m
        for s, m in zip(sums, mean, strict=True)
        if s is not None and m is not None and abs(m) > 0.01 * largest > 0
    ]
    if not ratios or max(ratios) - min(ratios) > _SAME_FACTOR * abs(max(ratios, key=abs)):
        return None
    return ratios[0]


def _before_exchange(rank: RankTrace, states: Sequence[LineChange]) -> LineChange | None:
    """A rank's own gradients: the last ones before a line that calls a collective changed them."""
    meetings = {(c.site.path, c.site.line) for c in rank.collectives if c.site is not None}
    own = None
    for one in states:
        if _lines(one) & meetings:
            return own
        own = one
    return None


def _weights_differ(a: RankTrace, b: RankTrace) -> FirstDifference | None:
    for model in sorted({c.model for c in a.line_changes}):
        found = _after_common(a, b, _states(a, WEIGHTS, model), _states(b, WEIGHTS, model))
        if found is not None:
            return found
    return None


def _gradients_differ(a: RankTrace, b: RankTrace) -> FirstDifference | None:
    apart = first_apart((a, b))
    for step in sorted({c.step for c in a.line_changes} & {s.n for s in (*a.steps, *b.steps)}):
        if apart is not None and step >= apart:
            break  # they step with gradients of different iterations
        mine, other = _gradient_states(a, step), _gradient_states(b, step)
        if not mine or not other or mine[-1].names != other[-1].names or _equal(mine[-1], other[-1]):
            continue
        found = _after_common(a, b, mine, other)
        if found is not None:
            return found
        manner, change = _exchange(a, step, mine)
        if manner is Manner.NEVER:
            manner, change = _in_part(mine, other) or (manner, change)
        return _difference(manner, change, (a.rank, b.rank), mine[-1], other[-1])
    return None


def _in_part(mine: Sequence[LineChange], others: Sequence[LineChange]) -> tuple[Manner, LineChange] | None:
    """The line that made some gradients equal, where it was another than the one that calls the collective."""
    pairs = enumerate(zip(mine[-1].sums, others[-1].sums, strict=True))
    alike = [i for i, (x, y) in pairs if x and equal((x,), (y,))]
    before = [c for c in mine if any(not equal((c.sums[i],), (mine[-1].sums[i],)) for i in alike)]
    if not alike or not before:
        return None
    return Manner.IN_VAIN, mine[mine.index(before[-1]) + 1]


def _exchange(rank: RankTrace, step: int, states: Sequence[LineChange]) -> tuple[Manner, LineChange]:
    """What a rank did to have its gradients averaged, where they never were equal to another's."""
    meetings = {(c.site.path, c.site.line) for c in rank.collectives if c.site is not None}
    changing = [c for c in states if _lines(c) & meetings]
    if changing:
        return Manner.IN_VAIN, changing[-1]
    stepped = next((s.t for s in rank.steps if s.n == step), 0.0)
    unused = [c for c in rank.collectives if c.site is not None and states[-1].t < c.t < stepped]
    if unused:
        return Manner.UNUSED, replace(states[-1], site=unused[0].site, callers=())
    return Manner.NEVER, states[-1]


def _after_common(
    a: RankTrace, b: RankTrace, mine: Sequence[LineChange], others: Sequence[LineChange]
) -> FirstDifference | None:
    """What came after the last state that both had; None where there was none, or nothing came."""
    common = [(i, j) for i, one in enumerate(mine) for j, other in enumerate(others) if _equal(one, other)]
    if not common:
        return None
    # A state may come back (doubled, then halved): the farthest that both had got to, not one alone.
    i, j = max(common, key=lambda pair: (min(pair), sum(pair)))
    mine_next, others_next = mine[i + 1 :], others[j + 1 :]
    if not mine_next and not others_next:
        return None
    if mine_next and others_next and mine_next[0].site == others_next[0].site:
        early = _earlier(a, b, mine_next[0], others_next[0])
        if early is a:
            return _difference(Manner.ALONE, mine_next[0], (a.rank,), mine_next[0], others[j])
        if early is b:
            return _difference(Manner.ALONE, others_next[0], (b.rank,), others_next[0], mine[i])
        change, both = mine_next[0], (a.rank, b.rank)
        return _difference(Manner.OTHERWISE, change, both, mine_next[0], others_next[0])
    for rank, own, foreign, last in (
        (a, mine_next, others_next, others[j]),
        (b, others_next, mine_next, mine[i]),
    ):
        if own and own[0].site not in {c.site for c in foreign}:
            return _difference(Manner.ALONE, own[0], (rank.rank,), own[0], last)
    return None


def _earlier(a: RankTrace, b: RankTrace, mine: LineChange, other: LineChange) -> RankTrace | None:
    """The rank that took the step before these changes in an earlier iteration; None where both took it together."""
    step = min(mine.step, other.step) - 1
    apart = first_apart((a, b))
    if apart is None or step < apart:
        return None
    return min((a, b), key=lambda rank: passes_at_steps(rank).get(step, 0))


def _difference(
    manner: Manner, change: LineChange, ranks: tuple[int, ...], one: LineChange, other: LineChange
) -> FirstDifference:
    differ = tuple(
        n for n, x, y in zip(one.names, one.sums, other.sums, strict=True) if not equal((x,), (y,))
    )
    return FirstDifference(change.what, manner, change, ranks, differ, len(one.names) - len(differ))


def _states(rank: RankTrace, what: str, model: int) -> list[LineChange]:
    return [c for c in rank.line_changes if c.what == what and c.model == model][-_MAX_STATES:]


def _gradient_states(rank: RankTrace, step: int) -> list[LineChange]:
    """What a rank's gradients were on the way to that step of its first model, cleared ones left out."""
    states = [c for c in _states(rank, GRADIENTS, 0) if c.step == step and c.site is not None]
    return [c for c in states if any(c.sums)]


def _equal(one: LineChange, other: LineChange) -> bool:
    return one.names == other.names and equal(one.sums, other.sums)


def _lines(change: LineChange) -> set[tuple[str, int]]:
    return {(s.path, s.line) for s in (change.site, *change.callers) if s is not None}
