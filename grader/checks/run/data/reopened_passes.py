"""Passes that a script begins anew for every step, `next(iter(loader))`: an epoch is all of them until the next one.

Each comes one step far and is left, and the next has the same order where the sampler was told no other epoch. Loops
that stop after their first batch look alike, but for what happens between epochs: an evaluation, another number.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from math import ceil

from grader.checks.run.data.epoch_shards import Shard
from grader.checks.run.data.loader_passes import RankPass, shard_of
from grader.model.drawn_data import Loader
from grader.model.trace import Trace


def shards_of(trace: Trace, passes: Iterable[RankPass]) -> Iterator[tuple[RankPass, Shard]]:
    """Training passes as shares of epochs, those begun again for every step as one; with the first pass of each."""
    evaluated = {
        r.rank: [e.t for e in r.events("evaluation") if e.fields.get("op") == "begin"] for r in trace.ranks
    }
    runs: list[list[RankPass]] = []
    last: dict[tuple[int, Loader | None], list[RankPass]] = {}
    for one in passes:
        run = last.get((one.rank, one.loader))
        if run is None or not _goes_on(run[-1], one, evaluated.get(one.rank, ())):
            run = last[one.rank, one.loader] = []
            runs.append(run)
        run.append(one)
    yield from ((run[0], _joined([shard_of(p) for p in run])) for run in runs)


def _goes_on(before: RankPass, one: RankPass, evaluated: Sequence[float]) -> bool:
    """Whether a pass was begun for the step after that of the one before, with nothing that ends an epoch between."""
    if before.pass_ is None or one.pass_ is None or not (_one_step(before) and _one_step(one)):
        return False
    alike = before.pass_.sampler_epoch == one.pass_.sampler_epoch and before.pass_.site == one.pass_.site
    ended = before.batches[-1].t
    apart = bisect_right(evaluated, ended) != bisect_right(evaluated, one.batches[0].t)
    return alike and not apart and one.batches[0].step == before.batches[0].step + 1


def _one_step(one: RankPass) -> bool:
    """Whether a pass was left after what one step took, and had more."""
    loader, left = one.loader, one.pass_ is not None and one.pass_.exhausted is not True
    if loader is None or not left or loader.size is None or loader.iterable:
        return False
    share = ceil(loader.size / (loader.num_replicas or 1))
    size = max(batch.size for batch in one.batches)
    whole = share // size if loader.drop_last else ceil(share / size)
    return len({batch.step for batch in one.batches}) == 1 and len(one.batches) < whole


def _joined(shards: Sequence[Shard]) -> Shard:
    first, *others = shards
    if not others:
        return first
    known = all(s.samples is not None for s in shards)
    samples = tuple(chain.from_iterable(s.samples or () for s in shards)) if known else None
    return replace(
        first,
        samples=samples,
        sizes=tuple(size for s in shards for size in s.sizes),
        num_distinct=len(set(samples or ())),
        exhausted=False,
        end_t=shards[-1].end_t,
        openings=len(shards),
    )
