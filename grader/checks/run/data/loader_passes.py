"""One rank's passes over its loaders, sorted into training, validation and neither.

Decided by what happened between the batches, never by names: optimizer steps make a pass a training pass. Who lets the
statistics of BatchNorm settle runs the network without gradients, too, and evaluates nothing: it is fed what it was
trained on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TypeAlias

from grader.checks.run.data.epoch_shards import Shard
from grader.model.drawn_data import Batch, Loader, Pass
from grader.model.trace import RankTrace, Trace

Key: TypeAlias = tuple[int, int]
"""A loader, and the number of a pass over it."""
_MOST = 0.5
"""Share of a pass, or of what was trained on, that has to be in both for them to be over the same samples."""


@dataclass(frozen=True, slots=True)
class RankPass:
    """One rank's pass over one loader, before it is matched with the others'."""

    rank: int
    kind: str
    loader: Loader | None
    pass_: Pass | None
    batches: tuple[Batch, ...]

    @property
    def root(self) -> tuple[str, str | None]:
        """What root data sets of different ranks have in common: class and split. Slices differ in size."""
        return (self.loader.dataset, self.loader.split) if self.loader is not None else ("", None)


def passes_of(rank: RankTrace) -> list[RankPass]:
    """All passes of one rank that delivered a batch, in order of their first one."""
    grouped: dict[Key, list[Batch]] = defaultdict(list)
    for batch in rank.batches:
        grouped[batch.loader, batch.pass_].append(batch)
    loaders = {loader.id: loader for loader in rank.loaders}
    passes = {(p.loader, p.n): p for p in rank.passes}
    evaluations = [e.t for e in rank.events("evaluation") if e.fields.get("op") == "begin"]
    evaluated_in = {
        key for key, batches in grouped.items()
        if any(start <= t <= end for start, end in [_window(passes.get(key), batches)] for t in evaluations)
    }  # fmt: skip
    training = _training_passes(
        rank, grouped, {k for k in evaluated_in if _is_over(rank, k, passes, grouped)}
    )
    result = []
    for key, batches in grouped.items():
        loader, pass_ = loaders.get(key[0]), passes.get(key)
        if key in training:
            kind = "training"
        else:
            split = loader.split if loader else None
            # A trace without a single evaluation event can't tell evaluation from looking at the data; the split can.
            kind = "validation" if key in evaluated_in or split == "validation" else "other"
        result.append(RankPass(rank.rank, kind, loader, pass_, tuple(batches)))
    return result


def with_settling(trace: Trace, passes: Sequence[RankPass]) -> list[RankPass]:
    """The passes of all ranks, of which those that let statistics settle are `settling`: they evaluate nothing.

    Such a pass runs the network in training mode, without a step, over samples that the rank trained on. Where nothing
    else is evaluated on any rank it stays what it looks like: a validation on samples that were trained on.
    """
    settling: set[int] = set()
    evaluates = False
    for rank in trace.ranks:
        own = [p for p in passes if p.rank == rank.rank]
        trained = [p for p in own if p.kind == "training"]
        again = [p for p in own if p.kind == "validation" and _same_samples(p, trained)]
        spans = [(id(p), *_window(p.pass_, p.batches)) for p in again]
        otherwise: set[int] = set()
        for event in (e for e in rank.events("evaluation") if e.fields.get("op") == "begin"):
            around = {number for number, start, end in spans if start <= event.t <= end}
            evaluates = evaluates or not around
            if event.fields.get("training_mode") is not True:
                otherwise |= around
        evaluates = evaluates or bool(otherwise)
        settling |= {id(p) for p in again} - otherwise
    return [replace(p, kind="settling") if evaluates and id(p) in settling else p for p in passes]


def _same_samples(one: RankPass, trained: Sequence[RankPass]) -> bool:
    """Whether a pass goes over what the same rank trained on: by its loader, else by the samples of that data set."""
    if one.loader is None:
        return False
    if any(t.loader == one.loader for t in trained):
        return True
    root = one.loader.root
    before = {i for t in trained if t.loader is not None and t.loader.root == root for i in _drawn(t)}
    now = set(_drawn(one))
    return len(now & before) > _MOST * min(len(now), len(before))


def _drawn(one: RankPass) -> Iterable[int]:
    return chain.from_iterable(batch.indices or () for batch in one.batches)


def _window(pass_: Pass | None, batches: Sequence[Batch]) -> tuple[float, float]:
    start = pass_.t if pass_ is not None else batches[0].t
    end = pass_.ended_t if pass_ is not None and pass_.ended_t is not None else batches[-1].t
    return min(start, batches[0].t), max(end, batches[-1].t)


def _is_over(rank: RankTrace, key: Key, passes: dict[Key, Pass], grouped: dict[Key, list[Batch]]) -> bool:
    """Whether a pass had ended before the next step was taken, for which other batches may have been made by hand."""
    ended = passes[key].ended_t if key in passes else None
    following = next((s.t for s in rank.steps if s.n == grouped[key][-1].step), None)
    return ended is not None and following is not None and ended < following


def _training_passes(rank: RankTrace, grouped: dict[Key, list[Batch]], evaluating: set[Key]) -> set[Key]:
    """Passes with optimizer steps between their batches, or followed by a step where a pass has a single batch."""
    stepping = {key for key, batches in grouped.items() if len({b.step for b in batches}) > 1}
    # Who delivered the last batch before each step: needed for passes too short to have a step *between* batches.
    last_before: dict[int, tuple[int, int]] = {b.step: (b.loader, b.pass_) for b in rank.batches}
    credited = {key for step, key in last_before.items() if step < len(rank.steps)} - evaluating
    loaders = {loader for loader, _ in stepping}
    # Where some loader clearly trains, a validation batch drawn just before a step must not count as training.
    return stepping | {key for key in credited if not loaders or key[0] in loaders}


def shard_of(p: RankPass) -> Shard:
    """A pass as the share of an epoch that it is."""
    start, end = _window(p.pass_, p.batches)
    samples: tuple[int, ...] | None = None
    if all(b.indices is not None for b in p.batches):
        samples = tuple(chain.from_iterable(b.indices or () for b in p.batches))
    loader_site = p.loader.site if p.loader else None
    return Shard(
        rank=p.rank,
        loader=p.loader,
        samples=samples,
        sizes=tuple(b.size for b in p.batches),
        num_distinct=len(set(samples or ())),
        exhausted=p.pass_.exhausted if p.pass_ else None,
        sampler_epoch=p.pass_.sampler_epoch if p.pass_ else None,
        site=loader_site or (p.pass_.site if p.pass_ else None),
        start_t=start,
        end_t=end,
        state=p.pass_.state if p.pass_ else None,
        opened=p.pass_.site if p.pass_ else None,
    )
