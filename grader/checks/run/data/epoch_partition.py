"""How one training epoch was divided among the ranks: disjoint, overlapping, the whole set on each, or not to be told.

Three rules share this judgement (DATA001, DATA003, DATA004), so that one fault is never counted as two. It asks for the
outcome alone and knows the honest leftovers: a sampler that pads its last round, a wrapper that fills the last global
batch, loaders that drop an incomplete one.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum

from grader.checks.phrases import count
from grader.checks.run.data.epoch_shards import EpochShards, Shard
from grader.checks.run.data.sample_ledger import Ledger, Stream

_OWN_SETS = "each rank holds a data set of its own, whose numbering can't be compared"
PLAIN_SAMPLERS = frozenset({"RandomSampler", "SequentialSampler"})


class PartitionKind(StrEnum):
    """How an epoch was divided."""

    DISJOINT = "disjoint"
    WHOLE = "whole"
    """Every rank drew (almost) the whole set."""
    OVERLAP = "overlap"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class EpochPartition:
    """One epoch, judged.

    Attributes:
        epoch: what was judged.
        kind: see `PartitionKind`; reason says why it is unknown, else "".
        num_excess: samples drawn beyond the first time, over all ranks; num_allowed: honest padding.
        num_expected: samples that an epoch should reach; None unknown.
        num_missing: of these, never drawn; None where it can't be told (early break, unknown size).
        num_droppable: one global batch.
        num_distinct: different samples that the ranks drew together.
        own_sets: each rank drew from a data set of its own; that these are different samples, only their number says.
    """

    epoch: EpochShards
    kind: PartitionKind
    reason: str
    num_excess: int
    num_allowed: int
    num_expected: int | None
    num_missing: int | None
    num_droppable: int
    num_distinct: int
    own_sets: bool = False


def epoch_partitions(ledger: Ledger, stream: Stream) -> tuple[EpochPartition, ...]:
    """Judge each epoch of a training stream in which two or more ranks took part."""
    # Boundaries that only lie near the right place lie farther off each time: the first few will do.
    judged = (e for e in stream.epochs if len(e.shards) > 1 and (e.exact or e.number < 3))
    return tuple(_division(ledger, stream, e) for e in judged)


def expected_size(ledger: Ledger, stream: Stream, epoch: EpochShards) -> int | None:
    """Samples that one epoch should reach over all ranks; None where nothing tells.

    A subset that all ranks share and divide counts as the script's own choice of training set. Where each rank's loader
    holds its own slice, the root data set counts, without what other loaders of the script use of it.
    """
    if stream.hashed:
        return ledger.num_train
    sizes = {s.loader.size for s in epoch.shards if s.loader}
    common = sizes.pop() if len(sizes) == 1 else None
    if (
        common is not None
        and not all(_takes_all(s) for s in epoch.shards)
        and not _equal_slices(stream, epoch, common)
    ):
        return common
    if stream.root_size is None:
        return None
    others: set[int | str] = set()
    for other in ledger.streams:
        same_root = (other.dataset, other.root_size, other.split) == (
            stream.dataset,
            stream.root_size,
            stream.split,
        )
        if other.kind not in ("training", "settling") and same_root:
            others.update(*(e.union for e in other.epochs))
    if common is not None and _is_whole(epoch, common):
        return common
    return stream.root_size - len(others - epoch.union)


def _equal_slices(stream: Stream, epoch: EpochShards, common: int) -> bool:
    """True where loaders of one size hold different slices: with its neighbour, an epoch meets more than one holds."""
    neighbours = (e for e in stream.epochs if abs(e.number - epoch.number) == 1)
    nearest = next(neighbours, None)
    return nearest is not None and len(epoch.union | nearest.union) > common


def _takes_all(shard: Shard) -> bool:
    """True when the rank's loader delivers its whole own data set (give or take a dropped batch)."""
    size = shard.loader.size if shard.loader else None
    return size is not None and shard.num_distinct + shard.batch_size > size


def _is_whole(epoch: EpochShards, common: int) -> bool:
    """True when every rank took a whole common set that is no mere slice of the root."""
    root = max((s.loader.root_size or 0 for s in epoch.shards if s.loader), default=0)
    return all(s.num_distinct >= 0.9 * common for s in epoch.shards) and (
        common > 1.1 * root / max(1, len(epoch.shards)) and epoch.num_distinct <= 1.1 * common
    )


def _division(ledger: Ledger, stream: Stream, epoch: EpochShards) -> EpochPartition:
    num_active = len(epoch.shards)
    batch = max(s.batch_size for s in epoch.shards)
    excess = sum(s.num_distinct for s in epoch.shards) - epoch.num_distinct
    allowed = num_active - 1
    expected = expected_size(ledger, stream, epoch)
    if epoch.own and _fills_last_batch(epoch, expected):
        allowed = max(allowed, excess)
    if not epoch.own:
        # Boundaries found by repetition lie a few samples late, so a few samples seem to be shared.
        allowed += max(4 * num_active * num_active, epoch.num_drawn // 20)
    elif stream.hashed:
        # Two samples with one content, such as a passage that stands twice in a text, may go to two ranks.
        allowed += epoch.num_drawn // 20
    kind, reason = _kind(ledger, stream, epoch, excess > allowed)
    distinct = epoch.num_distinct
    own_sets = kind is PartitionKind.UNKNOWN and epoch.known and _own_slices(ledger, epoch)
    if own_sets:
        kind, reason, expected = PartitionKind.DISJOINT, "", ledger.num_train
        excess, distinct = 0, min(expected or 0, sum(s.num_distinct for s in epoch.shards))
    missing = None
    if expected is not None and kind is not PartitionKind.UNKNOWN and epoch.own and epoch.complete:
        missing = max(0, expected - distinct)
    return EpochPartition(
        epoch, kind, reason, excess, allowed, expected, missing, num_active * batch, distinct, own_sets
    )


def _own_slices(ledger: Ledger, epoch: EpochShards) -> bool:
    """True where each rank built a data set of its own, all of them different, that add up to the training set.

    What they hold shows it, or that an index means another sample on each, by a number that decides what it means.
    """
    if ledger.num_train is None or not held_apart(ledger, epoch) or not epoch.complete:
        return False
    total, ranks = sum(s.num_distinct for s in epoch.shards), len(epoch.shards)
    batch = max(s.batch_size for s in epoch.shards)
    return ledger.num_train - ranks * batch <= total <= ledger.num_train + ranks - 1


def held_apart(ledger: Ledger, epoch: EpochShards) -> bool:
    """Whether each rank has a data set of its own: what they hold differs, or an index means another sample on each."""
    digests = [s.loader.digest if s.loader else None for s in epoch.shards]
    return ledger.alike is False or (None not in digests and len(set(digests)) == len(digests))


def _kind(ledger: Ledger, stream: Stream, epoch: EpochShards, overlaps: bool) -> tuple[PartitionKind, str]:
    if not epoch.known:
        return PartitionKind.UNKNOWN, "the loader does not tell which samples it drew"
    if stream.hashed and ledger.rows.at_random and not _same_sequence(epoch):
        return (
            PartitionKind.UNKNOWN,
            "ranks read windows that overlap each other, so shares are not a division",
        )
    if _same_sequence(epoch) and _comparable(ledger, stream, epoch):
        return (
            PartitionKind.WHOLE if _every_rank_whole(ledger, stream, epoch) else PartitionKind.OVERLAP
        ), ""
    if epoch.replacement and (untold := _repeats_untold(epoch)):
        return PartitionKind.UNKNOWN, untold
    if not _comparable(ledger, stream, epoch):
        told = "an index stands for another sample on each rank" if ledger.alike is False else _OWN_SETS
        return PartitionKind.UNKNOWN, told
    if overlaps:
        return (
            PartitionKind.WHOLE if _every_rank_whole(ledger, stream, epoch) else PartitionKind.OVERLAP
        ), ""
    if stream.hashed and ledger.rows.shifted:
        return PartitionKind.OVERLAP, ""
    if stream.hashed and not ledger.rows.num_rows and not _hashes_repeat(stream):
        # Random augmentation makes two views of one sample differ.
        return PartitionKind.UNKNOWN, "no fed sample came up twice, so equal samples could not be recognised"
    if not epoch.complete and _plain_whole(epoch) and _expected_shared(epoch) < 10:
        return (
            PartitionKind.UNKNOWN,
            f"only {count(epoch.num_drawn, 'sample')} were drawn before the loop was left",
        )
    return PartitionKind.DISJOINT, ""


def _same_sequence(epoch: EpochShards) -> bool:
    """True when two ranks drew the very same samples in the very same order (by chance: never)."""
    common = min(s.num_samples for s in epoch.shards)
    if common < 8:
        return False
    heads = Counter((s.samples or ())[:common] for s in epoch.shards)
    return max(heads.values()) == len(epoch.shards)


def _repeats_untold(epoch: EpochShards) -> str:
    """Why samples that a rank drew several times tell nothing of shares; "" where it drew with replacement.

    Draws with replacement from n samples repeat after about 1.25 √n, shares of a pass that begins anew after a share.
    """
    if any(s.loader is None for s in epoch.shards):
        return "samples come again without a loader that tells where an epoch begins"
    if any((s.loader.num_replicas or 0) > 1 for s in epoch.shards if s.loader):
        return "the data set that they divide holds samples several times"
    size = max(s.loader.size or 0 for s in epoch.shards if s.loader)
    if 2 * len(epoch.shards) * min(_before_repeat(s) for s in epoch.shards) > size:
        return "samples come again in one pass, whose epochs could not be told apart"
    return ""


def _before_repeat(shard: Shard) -> int:
    """Samples that a rank drew before one came again."""
    seen: set[int | str] = set()
    for sample in shard.samples or ():
        if sample in seen:
            break
        seen.add(sample)
    return len(seen)


def _every_rank_whole(ledger: Ledger, stream: Stream, epoch: EpochShards) -> bool:
    """Where ranks overlap: whether each of them takes everything, so that nothing was divided at all."""
    if stream.hashed:
        size = ledger.num_train if all(s.exhausted for s in epoch.shards) else None
        # Equal feeds mean equal work on every rank, unless they are equal slices, each gone through.
        least = 1.1 * size / len(epoch.shards) if size else 0.9 * epoch.num_distinct
        return all(s.num_distinct > least for s in epoch.shards)
    sizes = {s.loader.size for s in epoch.shards if s.loader}
    common = sizes.pop() if len(sizes) == 1 else None
    if common is None:
        return False
    if _is_whole(epoch, common):
        return True
    root = stream.root_size or common
    # Left early: the loaders say that each rank would have drawn everything.
    return not epoch.complete and _plain_whole(epoch) and common > 1.1 * root / len(epoch.shards)


def _plain_whole(epoch: EpochShards) -> bool:
    return all(s.loader is not None and s.loader.sampler in PLAIN_SAMPLERS for s in epoch.shards)


def _expected_shared(epoch: EpochShards) -> float:
    """Samples that two ranks would share by chance if each drew from the whole set on its own."""
    size = max((s.loader.size or 0 for s in epoch.shards if s.loader), default=0)
    counts = [s.num_distinct for s in epoch.shards]
    pairs = (sum(counts) ** 2 - sum(c * c for c in counts)) / 2
    return pairs / size if size else 0.0


def _comparable(ledger: Ledger, stream: Stream, epoch: EpochShards) -> bool:
    """True when index i is the same sample on every rank.

    It need not be: a rank may build a data set out of its own slice and number it from 0.
    """
    loaders = [s.loader for s in epoch.shards]
    if stream.hashed or ledger.alike is not None:
        return stream.hashed or bool(ledger.alike)
    if any(loader is None or loader.hides for loader in loaders) or stream.root_size is None:
        return False
    digests = {loader.digest for loader in loaders if loader}
    if None not in digests:
        return len(digests) == 1
    if all((loader.num_replicas or 0) > 1 for loader in loaders if loader):
        return True
    if ledger.num_train is None:
        return stream.split is not None
    # Data sets can't be disjoint slices when together they hold more than there is.
    return stream.root_size * len(epoch.shards) > 1.05 * ledger.num_train + len(epoch.shards)


def _hashes_repeat(stream: Stream) -> bool:
    return len(stream.epochs) > 1


def _fills_last_batch(epoch: EpochShards, expected: int | None) -> bool:
    """True when the only samples drawn twice are those that fill the last global batch, as Accelerate does."""
    batch = max(s.batch_size for s in epoch.shards)
    step = batch * len(epoch.shards)
    if expected is None or not epoch.complete or epoch.num_drawn != -(-expected // step) * step:
        return False
    if len({s.num_samples for s in epoch.shards}) != 1 or epoch.num_distinct != expected:
        return False
    early = [set((s.samples or ())[: len(s.samples or ()) - s.last_size]) for s in epoch.shards]
    return sum(len(e) for e in early) == len(set().union(*early))
