"""Where epochs begin in a pass without an end: where a rank starts to see its samples again.

A sample of the new epoch need not have been in the rank's last share, so the first that comes again may lie a little
late. Loops by hand begin an epoch with a batch of its own. What makes epochs of equal length is taken for exact; else
boundaries are as good as the samples that come again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from grader.checks.run.data.epoch_shards import Samples, Shard


@dataclass(frozen=True, slots=True)
class EpochCuts:
    """The ranks' endless shards, cut into epochs; `exact`: these are the boundaries, not merely near them."""

    by_rank: dict[int, list[Shard]]
    exact: bool

    @property
    def any(self) -> bool:
        """Whether samples came again on any rank."""
        return any(len(pieces) > 1 for pieces in self.by_rank.values())


def cut_at_samples(shards: Mapping[int, Shard]) -> EpochCuts:
    """Cut wherever a sample comes up again since the last cut."""
    return _cut(shards, {rank: (1,) * shard.num_samples for rank, shard in shards.items()})


def cut_together(shards: Mapping[int, Shard]) -> EpochCuts:
    """Cut before each batch of all ranks most of whose samples had been drawn by any of them since the last cut.

    What an epoch deals out anew comes to another rank as often as to the same, and a text may hold a passage twice.
    """
    if len({s.sizes for s in shards.values()}) != 1 or any(s.samples is None for s in shards.values()):
        return EpochCuts({rank: [shard] for rank, shard in shards.items()}, exact=False)
    begins = _begins(list(shards.values()))
    return _equal_epochs({rank: _split(shard, begins) for rank, shard in shards.items()})


def cut_apart(shards: Mapping[int, Shard]) -> EpochCuts:
    """Cut before each batch most of whose samples its own rank had drawn since the last cut.

    Where ranks draw what others have drawn, only a rank's own samples tell that an epoch begins.
    """
    return _equal_epochs({rank: _split(shard, _begins([shard])) for rank, shard in shards.items()})


def _begins(shards: Sequence[Shard]) -> list[int]:
    """Where batches begin most of whose samples one of these shards, all of equal batches, has brought since."""
    begins, seen, at = [0], set[int | str](), 0
    for size in shards[0].sizes:
        brought = [x for s in shards for x in (s.samples or ())[at : at + size]]
        if 2 * sum(x in seen for x in brought) > len(brought):
            begins.append(at)
            seen = set()
        seen.update(brought)
        at += size
    return begins


def cut_exactly(shards: Mapping[int, Shard], at_samples: EpochCuts) -> EpochCuts:
    """The same cuts, or those at the begin of a batch where these make epochs of equal length, and samples do not."""
    if at_samples.exact:
        return at_samples
    at_batches = _cut(shards, {rank: shard.sizes for rank, shard in shards.items()})
    return at_batches if at_batches.exact else at_samples


def _cut(shards: Mapping[int, Shard], steps: Mapping[int, Sequence[int]]) -> EpochCuts:
    return _equal_epochs({rank: _pieces(shard, steps[rank]) for rank, shard in shards.items()})


def _equal_epochs(by_rank: dict[int, list[Shard]]) -> EpochCuts:
    lengths = [[piece.num_samples for piece in pieces] for pieces in by_rank.values()]
    exact = len({len(one) for one in lengths}) == 1 and all(map(_regular, lengths))
    if exact:
        for pieces in by_rank.values():
            if pieces[-1].num_samples == pieces[0].num_samples:
                pieces[-1] = replace(pieces[-1], exhausted=True)
    return EpochCuts(by_rank, exact)


def _regular(lengths: Sequence[int]) -> bool:
    """Whether all epochs are as long as the first; the last one may have been left, where there are others to tell."""
    *whole, last = lengths
    return len(set(whole)) == 1 and (last == whole[0] or (last < whole[0] and len(whole) > 1))


def _pieces(shard: Shard, steps: Sequence[int]) -> list[Shard]:
    """Cut before each step, given in samples, that brings one again."""
    if shard.samples is None or shard.num_distinct == len(shard.samples):
        return [shard]
    begins, seen, at = [0], set[int | str](), 0
    for size in steps:
        brought = shard.samples[at : at + size]
        if not seen.isdisjoint(brought):
            begins.append(at)
            seen = set()
        seen.update(brought)
        at += size
    return _split(shard, begins)


def _split(shard: Shard, begins: Sequence[int]) -> list[Shard]:
    samples = shard.samples or ()
    ends = [*begins[1:], len(samples)]
    return [
        # The last piece stops wherever the loop did.
        _piece(shard, samples[begin:end], exhausted=end < len(samples) or None)
        for begin, end in zip(begins, ends, strict=True)
    ]


def _piece(shard: Shard, samples: Samples, *, exhausted: bool | None) -> Shard:
    num_full, rest = divmod(len(samples), max(1, shard.batch_size))
    return replace(
        shard,
        samples=samples,
        sizes=(shard.batch_size,) * num_full + (rest,) * bool(rest),
        num_distinct=len(set(samples)),
        exhausted=exhausted,
    )
