"""Compare what ranks held at the same moment: gradients as they were stepped with, and parameters afterwards.

Only ranks that hold equal parts of a model by right are compared with each other (`parallel_layout`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from grader.checks.run.gradients.discarded_tensors import discarded
from grader.checks.run.models.equal_sums import different
from grader.checks.run.models.parallel_layout import Layout, sharding_wraps
from grader.checks.run.optimisation.step_moments import first_apart, passes_at_steps
from grader.model.line_change import Sums
from grader.model.trace import Final, RankTrace, Trace


@dataclass(frozen=True, slots=True)
class Difference:
    """Two ranks that differ: at which step (0-based), in which tensors, with which sums."""

    step: int
    ranks: tuple[int, int]
    names: tuple[str, ...]
    sums: tuple[tuple[float | None, ...], tuple[float | None, ...]]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Outcome over all steps that could be compared.

    Attributes:
        num_steps: steps compared; num_different: of these, with a difference.
        first, last: first and last step compared, -1 for none.
        difference: the first one found.
        ranks: all ranks that differ from the lowest one compared.
    """

    num_steps: int
    num_different: int
    first: int
    last: int
    difference: Difference | None
    ranks: tuple[int, ...]


_NOTHING = Comparison(0, 0, -1, -1, None, ())


def sharded(trace: Trace) -> bool:
    """True where parameters are split among ranks, so that fingerprints differ by design."""
    return any(map(sharding_wraps, trace.ranks)) or any(f.sharded for r in trace.ranks for f in r.finals)


def incomparable(trace: Trace) -> bool:
    """True where no two ranks hold equal parts, so that there are no replicas to compare."""
    layout = Layout.of(trace)
    return (sharded(trace) or layout.divided) and not layout.replicated


def in_parts_by_hand(trace: Trace) -> str:
    """Why ranks with different weights may well hold parts of one model that the script divides by itself; else "".

    Where all of them hold the same weights, each has a whole model, whatever it exchanges.
    """
    hint = Layout.of(trace).by_hand
    ranks = trace.trainers
    if not hint or len(ranks) < 2:
        return hint
    pairs = [(a, b) for other in ranks[1:] for a, b in zip(ranks[0].finals, other.finals, strict=False)]
    differ = any(
        a.names != b.names or different(a.sums, b.sums) for a, b in pairs if len(a.sums) == len(b.sums)
    )
    unlike = any(a.names != b.names for a, b in pairs)
    found = compare_gradients(trace), compare_parameters(trace)
    return hint if differ or unlike or any(f.difference is not None for f in found) else ""


def compare_gradients(trace: Trace) -> Comparison:
    """Compare gradients as each optimizer step found them.

    Where ranks step in different iterations, those of the same iteration: after equal numbers of backward passes.
    """
    ranks = trace.trainers
    apart = first_apart(ranks) is not None
    held: list[_Table] = []
    for rank in ranks:
        passes = passes_at_steps(rank) if apart else {}
        steps = (s for s in rank.steps if not apart or s.n in passes)
        held.append(
            {
                (passes.get(s.n, s.n), s.optimizer): _Held(s.n, s.grad_names, s.grads)
                for s in steps
                if s.grads is not None
            }
        )
    return _among_copies(trace, ranks, held, _compare if apart else _compare_at_moments)


def compare_parameters(trace: Trace) -> Comparison:
    """Compare parameters as the next forward pass after a step found them."""
    ranks = trace.trainers
    return _among_copies(trace, ranks, [_parameters(r) for r in ranks], _compare_at_moments)


def equal_in_each_pass(trace: Trace) -> bool:
    """Whether parameters were compared at the same steps of the same passes, and were equal at all of them."""
    ranks = trace.trainers
    held = [_parameters(r) for r in ranks]
    return _equal_by_pass(ranks, held, _compare(ranks, held)) is not None


def compare_finals(
    first: RankTrace, other: RankTrace
) -> tuple[tuple[str, float | None, float | None], ...] | None:
    """Trained parameters that differ when the scripts ended: (name, first's sum, other's); None if not comparable.

    Weights that were changed after the last step (the best ones loaded again) are not.
    """
    pairs = list(zip(first.finals, other.finals, strict=False))
    if not pairs or any(a.touched or b.touched or not _same_shape(a, b) for a, b in pairs):
        return None
    return tuple((a.names[i], a.sums[i], b.sums[i]) for a, b in pairs for i in different(a.sums, b.sums))


def replicas_differ(trace: Trace) -> bool:
    """Whether ranks that should hold one model were seen to use different ones.

    What they hold at the end is not asked: rank 0 may have changed its own after all were done with them.
    """
    if incomparable(trace) or in_parts_by_hand(trace):
        return False
    return compare_parameters(trace).difference is not None


def _same_shape(a: Final, b: Final) -> bool:
    return not (a.sharded or b.sharded) and a.names == b.names and len(a.sums) == len(b.sums) == len(a.names)


@dataclass(frozen=True, slots=True)
class _Held:
    """What a rank held at step `n`."""

    n: int
    names: tuple[str, ...]
    sums: Sums
    drawn: Mapping[str, float | None] = field(default_factory=dict)
    """What is held of parameters that were drawn for this moment."""


_Table: TypeAlias = dict[tuple[int, ...], _Held]
"""Moment → what was held then."""


def _parameters(rank: RankTrace) -> _Table:
    """What it trains: without tensors of layers that were replaced, which an optimizer may still hold."""
    gone = discarded(rank)
    table: _Table = {}
    for one in rank.params:
        held = [(n, x) for n, x in zip(one.names, one.sums, strict=False) if n not in gone]
        drawn = dict(zip(one.drawn, one.drawn_sums, strict=False))
        table[one.n,] = _Held(one.n, tuple(n for n, _ in held), tuple(x for _, x in held), drawn)
    return table


def _among_copies(
    trace: Trace,
    ranks: Sequence[RankTrace],
    held: Sequence[_Table],
    compare: Callable[[Sequence[RankTrace], Sequence[_Table]], Comparison],
) -> Comparison:
    """Compare within each set of ranks that hold equal parts: the earliest difference, or the most that was equal."""
    found = []
    for copy in Layout.of(trace).copies:
        chosen = [n for n, rank in enumerate(ranks) if rank.rank in copy]
        if len(chosen) > 1:
            found.append(compare([ranks[n] for n in chosen], [held[n] for n in chosen]))
    differing = [f for f in found if f.difference is not None]
    if differing:
        return min(differing, key=lambda f: f.difference.step if f.difference is not None else 0)
    return max(found, key=lambda f: f.num_steps, default=_NOTHING)


def _compare_at_moments(ranks: Sequence[RankTrace], held: Sequence[_Table]) -> Comparison:
    """Compare at equal numbers of steps; where that finds a difference, at equal steps of the same passes.

    Ranks with one batch more in an epoch (`Join`) have taken different numbers of steps from then on.
    """
    found = _compare(ranks, held)
    if found.difference is not None and len({len(r.steps) for r in ranks}) > 1:
        return _equal_by_pass(ranks, held, found) or found
    return found


def _equal_by_pass(
    ranks: Sequence[RankTrace], held: Sequence[_Table], by_number: Comparison
) -> Comparison | None:
    """The comparison at equal steps of the same passes; None where that finds a difference, or nothing to compare.

    What was equal while equal numbers of steps were the same moments says nothing of later: then the ends decide.
    """
    found, apart = _compare(ranks, _by_pass(ranks, held)), by_number.difference
    if not found.num_steps or found.difference is not None:
        return None
    later = apart is None or found.last >= apart.step
    return found if later or not any(compare_finals(ranks[0], other) for other in ranks[1:]) else None


def _by_pass(ranks: Sequence[RankTrace], held: Sequence[_Table]) -> list[_Table]:
    """The same tables, by pass over the data and step within it; nothing where ranks made different passes.

    The last step of a pass is left out: what came of it is only found when the next one begins, and what ranks even out
    in between (a broadcast after uneven batches) has happened on one at another step than on the other.
    """
    begun = [_steps_at_passes(r) for r in ranks]
    if len({len(steps) for steps in begun}) != 1:
        return []
    tables: list[_Table] = []
    for steps, table in zip(begun, held, strict=True):
        moments: _Table = {}
        for (step, *more), one in table.items():
            number = bisect_right(steps, step) - 1
            if step + 1 in steps:
                continue
            moments[number, step - steps[number], *more] = one
        tables.append(moments)
    return tables


def _steps_at_passes(rank: RankTrace) -> tuple[int, ...]:
    """How many steps the rank had taken when it began its passes over loaders, each number once."""
    first: dict[tuple[int, int], int] = {}
    for batch in rank.batches:
        first.setdefault((batch.loader, batch.pass_), batch.step)
    return tuple(sorted({0, *first.values()}))


def _compare(ranks: Sequence[RankTrace], tables: Sequence[_Table]) -> Comparison:
    if len(tables) < 2:
        return _NOTHING
    base = tables[0]
    compared: set[int] = set()
    differing: set[int] = set()
    others: set[int] = set()
    found: Difference | None = None
    for rank, table in zip(ranks[1:], tables[1:], strict=True):
        for moment in sorted(base.keys() & table.keys()):
            one, other = base[moment], table[moment]
            a, b = one.sums, other.sums
            if one.names != other.names or len(a) != len(b) or not any(x is not None for x in (*a, *b)):
                continue
            compared.add(one.n)
            apart = _apart(one, other)
            if not apart:
                continue
            differing.add(one.n)
            others.add(rank.rank)
            if found is None or one.n < found.step:
                labels, mine, theirs = zip(*apart, strict=True)
                found = Difference(one.n, (ranks[0].rank, rank.rank), labels, (mine, theirs))
    first, last = min(compared, default=-1), max(compared, default=-1)
    return Comparison(len(compared), len(differing), first, last, found, tuple(sorted(others)))


def _apart(one: _Held, other: _Held) -> list[tuple[str, float | None, float | None]]:
    """Names and sums of what differs; of drawn ones, those that both looked at."""
    names = [*one.names, *(f"tensor {i}" for i in range(len(one.names), len(one.sums)))]
    found = [(names[i], one.sums[i], other.sums[i]) for i in different(one.sums, other.sums)]
    both = [name for name in one.drawn if name in other.drawn]
    a, b = ((*held.sums, *(held.drawn[name] for name in both)) for held in (one, other))
    # The others' sizes say what rounding may do to a drawn one, but a large one says nothing of the others.
    drawn = [both[i - len(one.sums)] for i in different(a, b) if i >= len(one.sums)]
    return found + [(name, one.drawn[name], other.drawn[name]) for name in drawn]
