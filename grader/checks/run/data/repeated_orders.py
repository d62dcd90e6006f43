"""Epochs that dealt the samples out as an earlier one did: the same order again, or the same shares.

Compares what each rank drew; whether that is a fault is the rules' matter.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

from grader.checks.run.data.epoch_partition import held_apart
from grader.checks.run.data.epoch_shards import Shard
from grader.checks.run.data.sample_ledger import Ledger, Stream

_MIN_SAMPLES = 16
"""Shorter runs of equal samples could be chance: 16 shuffled samples agree once in 16! draws."""

_MIN_EPOCHS = 2
_PADDING = 0.02
_WHOLE = 0.9


def repeated_epochs(shards: tuple[Shard, ...]) -> list[int]:
    """Numbers of the epochs of one rank that repeat an earlier one's order; the earlier one's comes first."""
    groups: dict[object, list[int]] = {}
    known = [(n, s) for n, s in enumerate(shards) if s.samples is not None and not s.in_order]
    # Epochs that were left early are compared as far as the shortest goes.
    whole = [(n, s) for n, s in known if s.exhausted]
    pool = whole if len(whole) > 1 else known
    shortest = min((s.num_samples for _, s in pool), default=0)
    if shortest < _MIN_SAMPLES:
        return []
    for number, shard in pool:
        groups.setdefault(_order(shard, shortest), []).append(number)
    return max((g for g in groups.values() if len(g) > 1), key=len, default=[])


def _order(shard: Shard, length: int) -> object:
    samples = (shard.samples or ())[:length]
    loader = shard.loader
    if loader is not None and loader.num_workers and shard.batch_size > 1:
        # Workers may deliver whole batches out of order (`in_order=False`): equal batches are what counts.
        size = shard.batch_size
        return frozenset(samples[i : i + size] for i in range(0, length - length % size, size))
    return samples


def never_renewed(stream: Stream, steady: Mapping[int, bool | None], *, mixed: bool) -> bool:
    """Whether each rank met the same samples in rising order in all epochs, of which there were several.

    Args:
        stream: what was trained on.
        steady: of each rank, whether its indices meant the same samples in all epochs; None where nothing tells.
        mixed: whether the script may mix what the indices stand for: then that has to be known.
    """
    if stream.hashed or not stream.ranks:
        return False
    for rank in stream.ranks:
        shards = stream.shards(rank)
        same = {s.samples for s in shards}
        if len(shards) < _MIN_EPOCHS or len(same) != 1 or shards[0].num_samples < _MIN_SAMPLES:
            return False
        known = steady.get(rank)
        if not all(s.samples and s.in_order and s.exhausted for s in shards) or known is False:
            return False
        if known is None and mixed:
            return False
    return True


def dealt_once(ledger: Ledger, stream: Stream, steady: Mapping[int, bool | None]) -> bool:
    """Whether ranks shuffled shares that never mix: what one met in all epochs no other has met.

    `steady`: of each rank, whether its indices meant the same samples in all epochs. Sets of the ranks' own whose
    indices did are such shares, whoever else holds a sample of them.
    """
    epochs_of = [[s for s in stream.shards(rank) if s.exhausted] for rank in stream.ranks]
    if len(epochs_of) < 2 or min(map(len, epochs_of)) < _MIN_EPOCHS:
        return False
    if any(s.samples is None or s.in_order for shards in epochs_of for s in shards):
        return False
    met = [{one for s in shards for one in s.samples or ()} for shards in epochs_of]
    if any(
        s.num_distinct < _WHOLE * len(own) for shards, own in zip(epochs_of, met, strict=True) for s in shards
    ):
        return False  # a part of the share in each epoch: something divides it once more
    if not stream.hashed and all(held_apart(ledger, e) for e in stream.epochs if len(e.shards) > 1):
        parts = ledger.num_train is not None and all(len(own) < _WHOLE * ledger.num_train for own in met)
        return parts and all(steady.get(rank) for rank in stream.ranks)
    # Dealt anew, half of what one of two ranks met in two epochs is met by the other, too.
    return all(len(a & b) <= _PADDING * min(len(a), len(b)) for a, b in combinations(met, 2))
