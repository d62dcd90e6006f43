"""Whether an index means the same sample on every rank, by looks at what came for it.

Only samples whose bits are always the same can tell: rows of whole numbers, such as a text's. Random transforms make
two views of one image differ.
"""

from __future__ import annotations

from collections import defaultdict

from grader.model.trace import Batch, RankTrace, Trace


def numbered_alike(trace: Trace) -> bool | None:
    """True where ranks that looked at one index found the same, False where one found another; None: nothing tells."""
    known: dict[int, str] = {}
    alike = None
    for rank in trace.ranks:
        own = _contents(rank)
        for index in own.keys() & known.keys():
            if own[index] != known[index]:
                return False
            alike = True
        known |= own
    return alike


def _contents(rank: RankTrace) -> dict[int, str]:
    """Hashes of what came for indices in steps with one batch and one look at it."""
    batches: dict[int, list[Batch]] = defaultdict(list)
    for batch in rank.batches:
        batches[batch.step].append(batch)
    found: dict[int, str] = {}
    for feed in rank.feeds:
        drawn = batches[feed.step]
        if feed.spot and feed.anchors and len(drawn) == 1 and len(drawn[0].indices or ()) == len(feed.hashes):
            found.update(zip(drawn[0].indices or (), feed.hashes, strict=True))
    return found
