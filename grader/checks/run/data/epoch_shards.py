"""One rank's share of one epoch, and one epoch of all ranks: how samples were drawn, counted once.

Holds the counting; which passes belong together is the ledger's, what a count means is `epoch_partition`'s.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeAlias

from grader.model.call_site import Site
from grader.model.drawn_data import Loader

Samples: TypeAlias = tuple[int | str, ...]
"""Indices into the root data set, or hashes of the samples themselves."""

NUM_SHOWN = 8
"""Shared samples kept as examples for "how was this seen"."""


@dataclass(frozen=True, slots=True)
class Shard:
    """What one rank consumed in one epoch.

    Attributes:
        rank: global rank.
        loader: the loader it came through; None for hashed feeds.
        samples: in order of delivery; None where neither indices nor hashes are known.
        sizes: samples of each batch that was delivered.
        num_distinct: different samples, 0 where unknown.
        exhausted: True when the loader ran dry, False after an early `break`, None where the trace ends first.
        sampler_epoch: what the sampler said its epoch was.
        site: where the pass was started, else where the loader was built.
        start_t, end_t: seconds since the ranks' start.
        state: of a data set of the script's own at its beginning, see `Pass`.
        openings: passes that were begun for it, of which each came one step far; 1 for a loop over the loader.
        opened: where a pass was begun.
    """

    rank: int
    loader: Loader | None
    samples: Samples | None
    sizes: tuple[int, ...]
    num_distinct: int
    exhausted: bool | None
    sampler_epoch: int | None
    site: Site | None
    start_t: float
    end_t: float
    state: str | None = None
    openings: int = 1
    opened: Site | None = None

    @property
    def num_samples(self) -> int:
        """Delivered in all."""
        return sum(self.sizes)

    @property
    def num_batches(self) -> int:
        """Delivered in all."""
        return len(self.sizes)

    @property
    def batch_size(self) -> int:
        """Samples of the largest batch."""
        return max(self.sizes)

    @property
    def last_size(self) -> int:
        """Samples of the last batch."""
        return self.sizes[-1]

    @property
    def in_order(self) -> bool:
        """True where indices only rise; what pads a share to its length starts once more from the beginning."""
        numbers = [s for s in self.samples or () if isinstance(s, int)]
        return len(numbers) == len(self.samples or ()) and sum(b < a for a, b in pairwise(numbers)) <= 1


@dataclass(frozen=True, slots=True)
class EpochShards:
    """One pass of all ranks that took part.

    Attributes:
        number: from 0, per stream.
        shards: by rank; ranks that drew nothing have none.
        own: True when the boundaries are the script's own passes, False when they were cut where samples repeat.
        exact: True when the boundaries are known: they are the script's own, or make epochs of equal length.
        replacement: True when a rank drew samples again and again within one pass.
        num_drawn, num_distinct: samples over all ranks.
        num_shared: samples drawn by two or more ranks; shared: the first few of them, sorted.
        union: all different samples.
    """

    number: int
    shards: tuple[Shard, ...]
    own: bool
    exact: bool
    replacement: bool
    num_drawn: int
    num_distinct: int
    num_shared: int
    shared: Samples
    union: frozenset[int | str] = field(repr=False, compare=False)

    @property
    def known(self) -> bool:
        """True when every shard's samples are known."""
        return bool(self.shards) and all(s.samples is not None for s in self.shards)

    @property
    def complete(self) -> bool:
        """True when every rank's loader ran dry."""
        return bool(self.shards) and all(s.exhausted is True for s in self.shards)

    @property
    def ranks(self) -> tuple[int, ...]:
        """Ranks that took part."""
        return tuple(s.rank for s in self.shards)


def as_epoch(
    number: int, shards: tuple[Shard, ...], own: bool, *, exact: bool, replacement: bool = False
) -> EpochShards:
    """Count what the ranks' shards of one epoch have in common; `own` and `exact` as in `EpochShards`.

    `replacement`: known already to be drawn again and again; else a rank's own samples tell.
    """
    union: set[int | str] = set().union(*(s.samples or () for s in shards))
    shared: set[int | str] = set()
    if len(union) < sum(s.num_distinct for s in shards):
        seen: set[int | str] = set()
        for shard in shards:
            shared |= seen.intersection(shard.samples or ())
            seen.update(shard.samples or ())
    return EpochShards(
        number=number,
        shards=shards,
        own=own,
        exact=exact,
        replacement=replacement or (own and any(_repeats(s) for s in shards)),
        num_drawn=sum(s.num_samples for s in shards),
        num_distinct=len(union),
        num_shared=len(shared),
        shared=first(shared),
        union=frozenset(union),
    )


def _repeats(shard: Shard) -> bool:
    """True where samples come up again before the last batch, which wrappers fill from the beginning.

    Not those of an iterator that was begun again.
    """
    if shard.openings > 1:
        return False
    samples = (shard.samples or ())[: -shard.last_size or None]
    return shard.num_distinct < len(shard.samples or ()) and len(set(samples)) < 0.95 * len(samples)


def first(samples: Iterable[int | str], count: int = NUM_SHOWN) -> Samples:
    """The first few samples in order, numbers before texts."""
    return tuple(sorted(samples, key=lambda s: (isinstance(s, str), s))[:count])
