"""What a validation pass goes over: how many samples it should come to, and whether ranks number them alike.

A data set may be the rank's share itself. Its indices then are those of every other share, and mean other samples.
"""

from __future__ import annotations

from grader.checks.run.data.epoch_shards import EpochShards
from grader.checks.run.data.sample_ledger import Ledger, Stream

_PADDED = 1.05
"""How much more than the split shares hold together that were filled up to one length."""


def expected_samples(ledger: Ledger, stream: Stream, epoch: EpochShards) -> int | None:
    """Samples that the ranks should come to together; None where nothing tells."""
    sizes = {s.loader.size for s in epoch.shards if s.loader}
    common = sizes.pop() if len(sizes) == 1 else None
    if common is not None and any(s.num_samples < 0.9 * common for s in epoch.shards):
        return common
    own = own_samples(ledger, stream, epoch)
    if own is not None:
        return own
    if _from_training(ledger, stream):
        # A part of the training root was set aside: what the ranks' loaders hold is all that can be known of it.
        held = [s.loader.size for s in epoch.shards if s.loader and s.loader.size is not None]
        largest = max(held, default=0)
        whole = epoch.known and epoch.num_distinct <= 1.1 * largest
        return largest if whole else sum(held) if len(held) == len(epoch.shards) else None
    # Each rank's loader holds a slice of its own: the slices belong to the root data set.
    if stream.root_size is not None and ledger.num_validation is not None and stream.split == "validation":
        return max(stream.root_size, ledger.num_validation)
    return stream.root_size


def scored_alike(ledger: Ledger, stream: Stream) -> bool | None:
    """Whether models were given the same for an index on all ranks, as far as somebody looked; None unknown."""
    look = ledger.scored.get((stream.dataset, stream.split))
    return look.alike if look is not None else None


def overlapping(ledger: Ledger, stream: Stream, epoch: EpochShards) -> bool:
    """Whether models of several ranks were seen to score the same samples, more than fill shares up to one length."""
    look = ledger.scored.get((stream.dataset, stream.split))
    return look is not None and look.num_twice > len(epoch.shards)


def own_samples(ledger: Ledger, stream: Stream, epoch: EpochShards) -> int | None:
    """Samples of the set that is divided where each rank holds a data set of its own; None where it does not.

    Told by what models were given for equal indices, else by what the data sets hold.
    """
    held = [s.loader.size for s in epoch.shards if s.loader is not None and s.loader.size is not None]
    alike = scored_alike(ledger, stream)
    digests = {s.loader.digest for s in epoch.shards if s.loader}
    differ = None not in digests and len(digests) == len(epoch.shards)
    if not (alike is False or (alike is None and differ)) or len(held) < max(2, len(epoch.shards)):
        return None
    total, split = sum(held), ledger.num_validation
    if not split or stream.split == "train":
        # Nothing says how many there are. What a stage of a pipeline is given differs, too, but not its data set.
        return total if differ or len({s.state for s in epoch.shards}) == len(epoch.shards) else None
    if total > _PADDED * split + len(held):
        return None  # no division of the split: the data sets differ in something else
    return split if stream.split == "validation" or total >= split - len(held) else total


def same_numbers(ledger: Ledger, stream: Stream, epoch: EpochShards) -> bool:
    """True when index i is the same sample on every rank; slices numbered from 0 on each rank are not comparable."""
    alike = scored_alike(ledger, stream)
    if alike is not None:
        return alike
    digests = {s.loader.digest if s.loader else None for s in epoch.shards}
    if any(s.loader is None or s.loader.hides for s in epoch.shards) or (
        None not in digests and len(digests) > 1
    ):
        return False
    if all(s.loader is not None and (s.loader.num_replicas or 0) > 1 for s in epoch.shards):
        return True
    return stream.root_size is not None and (
        ledger.num_validation is None
        or stream.split != "validation"
        or stream.root_size >= ledger.num_validation
    )


def _from_training(ledger: Ledger, stream: Stream) -> bool:
    """Whether a validation set was set aside from the data set that training draws from."""
    return stream.split != "validation" and any(
        s.root == stream.root for s in ledger.training if not s.hashed
    )
