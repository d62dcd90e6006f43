"""Rows of whole numbers that overlap without being the same: windows of one text, at offsets of their own.

Told by places that move with the text, see `probe.fingerprints.anchors`. Counts only; what they mean for a division of
the data is `epoch_partition`'s to say.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import combinations

from grader.checks.run.models.parallel_layout import Layout, Ranks
from grader.model.trace import RankTrace, Trace

_MOST_DIGITS = 6
_FEWEST = 6
"""Rows that have to overlap before it is no phrase that a text happens to repeat."""
_WITHIN = 0.12
"""Share of rows: in prose and programs a tenth of all rows share a long phrase with another one."""
_BETWEEN, _ALIKE = 0.1, 0.6
"""Shares: of a rank's rows that overlap another's, and of these by the two distances that one shift comes to."""


@dataclass(frozen=True, slots=True)
class RowOverlaps:
    """Of rows that ranks were fed and no loader explains.

    Attributes:
        num_rows: rows that were looked at, over all ranks; 0: nothing is known.
        within: of them, rows that overlap another one of the same rank.
        shifted: of them, rows that overlap one of another rank, all shifted by the same distance; 0 where that is not
            what many have in common.
        ranks: those that shifted rows were looked at on.
    """

    num_rows: int = 0
    within: int = 0
    shifted: int = 0
    ranks: Ranks = ()

    @property
    def at_random(self) -> bool:
        """Whether ranks read windows that overlap each other, as draws at random offsets do."""
        return self.within >= max(_FEWEST, _WITHIN * self.num_rows)


def row_overlaps(trace: Trace, layout: Layout) -> RowOverlaps:
    """What rows of one rank of each model have in common."""
    ranks = layout.one_each([r for r in trace.ranks if r.feeds])
    seen = [_rows(rank) for rank in ranks]
    num_rows = sum(map(len, seen))
    within = 0
    for rows in seen:
        times = Counter(gram for gram, _ in rows.values())
        within += sum(count for count in times.values() if count > 1)
    moved: Counter[int] = Counter()
    for one, other in combinations(seen, 2):
        at = {gram: (row, place) for row, (gram, place) in one.items()}
        for row, (gram, place) in other.items():
            there = at.get(gram)
            if there is not None and there[0] != row and there[1] != place:
                moved[place - there[1]] += 1
    total, most = moved.total(), sum(times for _, times in moved.most_common(2))
    alike = total >= max(_FEWEST, _BETWEEN * num_rows / 2) and most >= _ALIKE * total
    return RowOverlaps(num_rows, within, total if alike else 0, tuple(r.rank for r in ranks) if alike else ())


def _rows(rank: RankTrace) -> dict[str, tuple[str, int]]:
    """Different rows by hash, with the run of numbers that stands for them and where it begins."""
    found = {}
    for feed in rank.feeds:
        for row, anchor in zip(feed.hashes, feed.anchors, strict=False) if not feed.spot else ():
            place, _, gram = anchor.partition(":")
            if gram and place.isdecimal() and len(place) < _MOST_DIGITS:
                found[row] = gram, int(place)
    return found
