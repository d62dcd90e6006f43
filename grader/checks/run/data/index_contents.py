"""Whether an index means the same sample on every rank, and in every epoch, by looks at what came for it.

Labels tell, since augmentation leaves them as they are. Without labels only samples can whose bits are always the same:
rows of whole numbers, such as a text's, or images that came alike whenever one rank drew them again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable
from itertools import pairwise
from typing import TypeAlias

from grader.checks.run.data.loader_passes import passes_of
from grader.model.drawn_data import Batch
from grader.model.trace import RankTrace, Trace

_Look: TypeAlias = tuple[tuple[str, str | None], int, int, int | str]
"""A data set, by class and split; the number of a pass over it; an index; and what came for that."""
_Found: TypeAlias = dict[tuple[Hashable, ...], set[int | str]]

_FEWEST = 32
"""Indices that have to be compared: fewer could agree, or differ, by chance or by a few noisy labels."""
_STEADY = 0.95
_MOST_ALIKE = 0.8
_APART = 0.4
"""Share of indices with another label: of two classes, half differ; labels made noisy on purpose seldom do so often."""


def numbered_alike(trace: Trace) -> bool | None:
    """True where ranks that looked at one index found the same, False where one found another; None: nothing tells."""
    known: dict[int, str] = {}
    alike = None
    for own in map(_rows, trace.ranks):
        for index in own.keys() & known.keys():
            if own[index] != known[index]:
                return False
            alike = True
        known |= own
    return False if alike is None and _numbered_apart(trace) else alike


def dealt_again(rank: RankTrace) -> bool | None:
    """Whether indices meant the same samples in all epochs of a rank; None where too few were looked at twice."""
    for kind in (_labels, _hashes):
        looks = kind(rank)
        passes: dict[tuple[Hashable, ...], set[int]] = defaultdict(set)
        for root, number, index, _ in looks:
            passes[root, index].add(number)
        found = _found(looks, by_pass=False)
        again = [what for sample, what in found.items() if len(passes[sample]) > 1]
        if len(again) >= _FEWEST and _varied(found):
            return sum(len(what) == 1 for what in again) >= _STEADY * len(again)
    return None


def met(rank: RankTrace) -> set[int | str]:
    """Hashes of the samples that a rank was looked at with in training, of known indices."""
    return {what for _, _, _, what in _hashes(rank)}


def _numbered_apart(trace: Trace) -> bool:
    """Whether two ranks found other samples under the same numbers.

    In one epoch they may be compared as they are, and over all of them where each rank is true to its own numbering.
    """
    steady = all(map(dealt_again, trace.ranks))
    for kind in (_labels, _hashes):
        told = [kind(rank) for rank in trace.ranks]
        for by_pass in (True, False):
            if not steady and (kind is _hashes or not by_pass):
                continue
            looks = [_found(one, by_pass=by_pass) for one in told]
            pairs = [(a[s], b[s]) for a, b in pairwise(looks) for s in a.keys() & b.keys()]
            if len(pairs) >= _FEWEST and all(map(_varied, looks)):
                return sum(a.isdisjoint(b) for a, b in pairs) >= _APART * len(pairs)
    return False


def _found(looks: Iterable[_Look], *, by_pass: bool) -> _Found:
    """What came for each index, in each pass or in all of them."""
    found: _Found = defaultdict(set)
    for root, number, index, what in looks:
        found[(root, number, index) if by_pass else (root, index)].add(what)
    return found


def _varied(found: _Found) -> bool:
    """Whether equal finds say anything: not where nearly all samples have one label."""
    times = Counter(one for what in found.values() for one in what)
    return max(times.values(), default=0) < _MOST_ALIKE * times.total()


def _labels(rank: RankTrace) -> list[_Look]:
    return [
        (root, batch.pass_, index, label)
        for root, batch in _trained(rank)
        if batch.indices and batch.labels and len(batch.labels) == len(batch.indices)
        for index, label in zip(batch.indices, batch.labels, strict=True)
    ]


def _hashes(rank: RankTrace) -> list[_Look]:
    drawn: dict[int, list[tuple[tuple[str, str | None], Batch]]] = defaultdict(list)
    for root, batch in _trained(rank):
        drawn[batch.step].append((root, batch))
    return [
        (root, batch.pass_, index, what)
        for feed in rank.feeds
        if feed.spot and len(drawn[feed.step]) == 1
        for root, batch in drawn[feed.step]
        if len(batch.indices or ()) == len(feed.hashes)
        for index, what in zip(batch.indices or (), feed.hashes, strict=True)
    ]


def _trained(rank: RankTrace) -> Iterable[tuple[tuple[str, str | None], Batch]]:
    for one in passes_of(rank):
        if one.kind == "training":
            yield from ((one.root, batch) for batch in one.batches)


def _rows(rank: RankTrace) -> dict[int, str]:
    """Hashes of rows of whole numbers that came for indices in steps with one batch and one look at it."""
    batches: dict[int, list[Batch]] = defaultdict(list)
    for batch in rank.batches:
        batches[batch.step].append(batch)
    found: dict[int, str] = {}
    for feed in rank.feeds:
        drawn = batches[feed.step]
        if feed.spot and feed.anchors and len(drawn) == 1 and len(drawn[0].indices or ()) == len(feed.hashes):
            found.update(zip(drawn[0].indices or (), feed.hashes, strict=True))
    return found
