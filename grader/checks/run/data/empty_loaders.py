"""Loaders that have no batch to give, and why: too few samples for one whole batch, or a share of none.

Told by passes that ran dry at once; where a run failed before any pass, by the sizes that the loader was built with.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass

from grader.checks.phrases import count
from grader.model.drawn_data import Loader
from grader.model.trace import RankTrace, Trace

_WHOLE = ("RandomSampler", "SequentialSampler")


@dataclass(frozen=True, slots=True)
class EmptyLoader:
    """One loader that gave nothing.

    Attributes:
        loader: as the first of these ranks built it.
        ranks: on which it was empty, sorted; num_ranks: that built one at this place.
        num_samples: that fell to a rank; None where that is not known.
    """

    loader: Loader
    ranks: tuple[int, ...]
    num_ranks: int
    num_samples: int | None

    @property
    def cause(self) -> str:
        """Why it gave nothing, as a clause."""
        size = self.loader.batch_size
        if self.num_samples == 0:
            return "its share holds no samples"
        if self.num_samples is not None and size is not None and self.loader.drop_last:
            return (
                f"a rank's share has {count(self.num_samples, 'sample')}, and with `drop_last=True` what does not fill "
                f"a batch of {size:,} is dropped"
            )
        return "its sampler or data set gave no sample"

    @property
    def cure(self) -> str:
        """What to write instead."""
        if self.num_samples and self.loader.drop_last:
            return (
                "Leave out `drop_last=True`, or take batches that are no larger than a rank's share: "
                "`batch_size=min(BATCH_SIZE, len(dataset) // world_size)`."
            )
        return (
            "Print `len(dataset)` and `len(loader)` on each rank, and cut shares that hold samples: "
            "`range(rank, len(dataset), world_size)`."
        )


def empty_loaders(trace: Trace, *, built: bool = False) -> tuple[EmptyLoader, ...]:
    """Loaders whose every pass ran dry without a batch, by place; with `built`, those too that nobody drew from yet."""
    found: dict[tuple[str, int], list[tuple[int, Loader]]] = defaultdict(list)
    everywhere: dict[tuple[str, int], set[int]] = defaultdict(set)
    for rank in trace.ranks:
        for loader in rank.loaders:
            place = (loader.site.path, loader.site.line) if loader.site is not None else ("", 0)
            everywhere[place].add(rank.rank)
            if _gave_nothing(rank, loader, built):
                found[place].append((rank.rank, loader))
    return tuple(
        EmptyLoader(
            ones[0][1], tuple(sorted({r for r, _ in ones})), len(everywhere[place]), _share(ones[0][1])
        )
        for place, ones in sorted(found.items())
    )


def _gave_nothing(rank: RankTrace, loader: Loader, built: bool) -> bool:
    passes = [one for one in rank.passes if one.loader == loader.id]
    if any(batch.loader == loader.id for batch in rank.batches):
        return False
    if passes:
        return all(one.exhausted is True for one in passes)
    share = _share(loader)
    short = share is not None and loader.drop_last and share < (loader.batch_size or 1)
    return built and (share == 0 or short)


def _share(loader: Loader) -> int | None:
    """Samples that fall to one rank, where the sampler is one that is known."""
    if loader.size is None or loader.iterable:
        return None
    if loader.sampler == "DistributedSampler" and loader.num_replicas:
        return math.ceil(loader.size / loader.num_replicas)
    return loader.size if loader.sampler in _WHOLE else None
