"""Ranks that hold parts of the samples already, and whose samplers divide each part once more.

The parts need not be compared by index: had the ranks one set, in whatever order, they would have met samples of each
other's where both were looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from grader.checks.run.data.epoch_shards import EpochShards
from grader.checks.run.data.index_contents import met
from grader.checks.run.data.sample_ledger import Ledger, Stream
from grader.model.trace import Trace

_MOST_DRAWN = 0.75
_EXPECTED = 10
"""Samples that two ranks would have met both, had they one set: none at all is then no chance (e^-10)."""


@dataclass(frozen=True, slots=True)
class DividedParts:
    """What became of it: by rank the sizes of parts, what was drawn of them in an epoch, and in the whole run."""

    epoch: EpochShards
    sizes: dict[int, int]
    drawn: dict[int, int]
    ever: dict[int, int]

    @property
    def size(self) -> int:
        """Samples of all parts."""
        return sum(self.sizes.values())


def divided_parts(trace: Trace, ledger: Ledger, stream: Stream) -> DividedParts | None:
    """Parts of which no rank drew all in an epoch, though no other rank has the rest; None where that isn't sure."""
    epoch = next((e for e in stream.epochs if e.known and e.own and e.complete), None)
    if ledger.alike is not False or epoch is None or len(epoch.shards) < 2:
        return None
    loaders = {s.rank: s.loader for s in epoch.shards if s.loader is not None}
    sizes = {rank: loader.size for rank, loader in loaders.items() if loader.size and loader.digest}
    drawn = {s.rank: s.num_distinct for s in epoch.shards}
    if sizes.keys() != drawn.keys() or len({one.digest for one in loaders.values()}) < len(loaders):
        return None
    if any((one.num_replicas or 0) < 2 for one in loaders.values()) or any(
        drawn[rank] > _MOST_DRAWN * size for rank, size in sizes.items()
    ):
        return None
    looked = {rank.rank: met(rank) for rank in trace.ranks if rank.rank in sizes}
    for a, b in combinations(sorted(looked), 2):
        chance = len(looked[a]) * len(looked[b]) / max(sizes[a], sizes[b])
        if chance < _EXPECTED or not looked[a].isdisjoint(looked[b]):
            return None
    ever = {rank: len({x for s in stream.shards(rank) for x in s.samples or ()}) for rank in sizes}
    return DividedParts(epoch, sizes, drawn, ever)
