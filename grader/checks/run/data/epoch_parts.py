"""Passes that are parts of one epoch: a loop that stops, is resumed and goes on, or one that takes chunks in turn.

What makes an epoch is that every sample comes up once; how many passes that takes is the script's own affair.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from grader.checks.run.data.epoch_shards import Shard

_Row: TypeAlias = tuple[Shard, ...]
"""One pass of all ranks."""
_TWINS = 0.05
"""Share of samples that may have another's content, where contents tell samples apart."""


def whole_epochs(per_rank: Mapping[int, Sequence[Shard]], size: int | None) -> dict[int, list[Shard]]:
    """The ranks' passes in order; those that deal out one epoch together have become one.

    They do where none draws what another drew, and where passes that were left are followed by one that runs dry, or
    all of them add up to the `size` of the set.
    """
    if len({len(shards) for shards in per_rank.values()}) != 1:
        return {rank: list(shards) for rank, shards in per_rank.items()}
    rows: list[_Row] = list(zip(*per_rank.values(), strict=True))
    epochs: list[_Row] = []
    while rows:
        num_parts = _num_parts(rows, size)
        epochs.append(tuple(_joined(parts) for parts in zip(*rows[:num_parts], strict=True)))
        rows = rows[num_parts:]
    return {rank: [epoch[n] for epoch in epochs] for n, rank in enumerate(per_rank)}


def _num_parts(rows: Sequence[_Row], size: int | None) -> int:
    """How many passes, from the first one on, are one epoch."""
    found, drawn = 1, set[int | str]()
    for number, row in enumerate(rows, 1):
        if any(shard.samples is None for shard in row):
            break
        samples = set[int | str]().union(*(shard.samples or () for shard in row))
        if len(samples & drawn) > _num_padded(row, min(len(samples), len(drawn))):
            break
        drawn |= samples
        whole = size is not None and len(drawn) + sum(shard.batch_size for shard in row) > size
        if _ran_dry(row) and (whole or not any(map(_ran_dry, rows[: number - 1]))):
            found = number
            if whole:
                break
    return found


def _num_padded(row: _Row, num_samples: int) -> int:
    """Samples that honest parts may share: those that make ranks' shares equal, and texts that stand there twice."""
    hashed = any(isinstance(sample, str) for shard in row for sample in (shard.samples or ())[:1])
    return len(row) - 1 + int(_TWINS * num_samples) * hashed


def _ran_dry(row: _Row) -> bool:
    return all(shard.exhausted for shard in row)


def _joined(parts: Sequence[Shard]) -> Shard:
    """One rank's passes as one: with the loader and the epoch of the first, up to the end of the last."""
    first, *others = parts
    if not others:
        return first
    samples = tuple(sample for part in parts for sample in part.samples or ())
    return replace(
        first,
        samples=samples,
        sizes=tuple(size for part in parts for size in part.sizes),
        num_distinct=len(set(samples)),
        exhausted=others[-1].exhausted,
        end_t=others[-1].end_t,
    )
