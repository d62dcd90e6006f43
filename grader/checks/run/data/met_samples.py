"""Whether ranks draw the same samples within one epoch, asked before it is known where epochs begin.

The first draws, as many as there are samples, are one epoch wherever samples are divided: each of them is another one.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest

from grader.checks.run.data.epoch_shards import Samples, Shard

_MET, _AGAIN = 0.2, 0.05
"""Shares of the first draws: of what another rank drew as well, and of what a rank drew twice, as texts repeat."""
_FEWEST = 16
_UNLIKE_CHANCE = 4
"""How often ranks meet for each time that they would by draws with replacement."""


def meet_within_epoch(shards: Mapping[int, Shard]) -> bool:
    """Whether ranks draw what others drew before all of them together can be through the samples that there are.

    In draws with replacement samples come again to the same rank, too: to the others as much more often as these are.
    """
    if len(shards) < 2 or any(s.samples is None for s in shards.values()):
        return False
    first = _first_draws(shards, len(set[int | str]().union(*(s.samples or () for s in shards.values()))))
    drawn, distinct = sum(map(len, first)), [set(samples) for samples in first]
    again = drawn - sum(map(len, distinct))
    met = drawn - again - len(set[int | str]().union(*distinct))
    many = met >= max(_FEWEST, _MET * drawn)
    return many and again <= _AGAIN * drawn and met >= _UNLIKE_CHANCE * (len(shards) - 1) * again


def _first_draws(shards: Mapping[int, Shard], most: int) -> list[Samples]:
    """What ranks drew, batch by batch side by side, up to a number of samples in all."""
    ends, drawn = dict.fromkeys(shards, 0), 0
    for sizes in zip_longest(*(s.sizes for s in shards.values()), fillvalue=0):
        drawn += sum(sizes)
        if drawn > most:
            break
        for rank, size in zip(shards, sizes, strict=True):
            ends[rank] += size
    return [(shard.samples or ())[: ends[rank]] for rank, shard in shards.items()]
