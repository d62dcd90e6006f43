"""What is compared and what comes of it; both pass between processes as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ComparedSubmission:
    """What one learner handed in: `id` is the attempt's, `files` are (path, text); `earlier`: in another course."""

    id: int
    files: tuple[tuple[str, str], ...]
    earlier: bool = False


@dataclass(frozen=True, slots=True)
class Passage:
    """Lines `first` to `last` of a file; `partner`: index of the passage on the other side that it resembles most."""

    path: str
    first: int
    last: int
    partner: int


@dataclass(frozen=True, slots=True)
class SimilarPair:
    """Two submissions that share passages.

    Attributes:
        a, b: ids; share_a, share_b: part of each one's own code that the passages cover, 0 to 1, skeleton left out.
        passages_a, passages_b: where.
    """

    a: int
    b: int
    share_a: float
    share_b: float
    passages_a: tuple[Passage, ...]
    passages_b: tuple[Passage, ...]

    @property
    def share(self) -> float:
        """The larger of both shares."""
        return max(self.share_a, self.share_b)

    @property
    def num_lines(self) -> int:
        """Lines that the passages cover, of the work where they are fewer."""
        return min(_lines(self.passages_a), _lines(self.passages_b))


@dataclass(frozen=True, slots=True)
class ComparisonRequest:
    """What to compare.

    Attributes:
        submissions: at most one per learner and course; two of other courses are not compared with each other.
        skeleton: texts that everybody started from.
        most: how many pairs are wanted, those that share most.
        ignore_common: leave out passages that many of the class share; off for a pair that is looked at closely.
        closer: look closely at every pair that is found, too.
    """

    submissions: tuple[ComparedSubmission, ...]
    skeleton: tuple[str, ...]
    most: int = 100
    ignore_common: bool = True
    closer: bool = False


@dataclass(frozen=True, slots=True)
class SimilarityResult:
    """Pairs, those with the most lines in common first; `num_compared` submissions; `too_large`: those left out.

    `closer`: the same pairs with what much of the class has, too, where that was asked for.
    """

    pairs: tuple[SimilarPair, ...]
    num_compared: int
    too_large: tuple[int, ...]
    closer: tuple[SimilarPair, ...] = ()


def _lines(passages: Sequence[Passage]) -> int:
    return len({(one.path, line) for one in passages for line in range(one.first, one.last + 1)})
