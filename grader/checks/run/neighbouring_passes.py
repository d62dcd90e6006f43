"""What other loaders brought of a set beside one pass over it: the rest that an even division leaves over.

PyTorch's ImageNet example drops it on the divided loader, and lets each rank score it once more by a loader of its own.
"""

from __future__ import annotations

import math

from grader.checks.run.epoch_shards import EpochShards
from grader.checks.run.sample_ledger import Ledger, Stream


def samples_besides(ledger: Ledger, stream: Stream, epoch: EpochShards) -> frozenset[int | str]:
    """Samples of the same set that other loaders of its kind brought before the next pass of this one began."""
    begun = sorted(min(s.start_t for s in e.shards) for e in stream.epochs if e.number >= epoch.number)
    start, end = (*begun, math.inf)[:2]
    others = [s for s in ledger.streams if s is not stream and (s.kind, s.root) == (stream.kind, stream.root)]
    shards = (shard for other in others for beside in other.epochs for shard in beside.shards)
    return frozenset(sample for s in shards if start <= s.start_t < end for sample in s.samples or ())
