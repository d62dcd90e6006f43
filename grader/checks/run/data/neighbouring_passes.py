"""What other loaders brought of a set beside one pass over it: the rest that an even division leaves over.

PyTorch's ImageNet example drops it on the divided loader, and lets each rank score it once more by a loader of its own.
"""

from __future__ import annotations

import math

from grader.checks.run.data.epoch_shards import EpochShards
from grader.checks.run.data.sample_ledger import Ledger, Stream


def samples_besides(ledger: Ledger, stream: Stream, epoch: EpochShards) -> frozenset[int | str]:
    """Samples of the same set that other loaders of its kind brought to a rank before its next pass of this one."""
    others = [s for s in ledger.streams if s is not stream and (s.kind, s.root) == (stream.kind, stream.root)]
    found: set[int | str] = set()
    for own in epoch.shards:
        end = min((s.start_t for s in stream.shards(own.rank) if s.start_t > own.start_t), default=math.inf)
        for shard in (s for other in others for s in other.shards(own.rank)):
            if own.start_t <= shard.start_t < end:
                found.update(shard.samples or ())
    return frozenset(found)
