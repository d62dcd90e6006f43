"""Sets of ranks as a test tells them apart, and how conditions on them are put together."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class RankSet(Enum):
    """The ranks for which a condition holds."""

    ALL = "all"
    """It says nothing about ranks."""
    MAIN = "main"
    OTHERS = "others"
    SOME = "some"
    DISTRIBUTED = "distributed"
    """Every rank of a distributed run."""
    ALONE = "alone"
    """Only a run without other ranks."""


OPPOSITE = {
    RankSet.ALL: RankSet.ALL, RankSet.MAIN: RankSet.OTHERS, RankSet.OTHERS: RankSet.MAIN, RankSet.SOME: RankSet.SOME,
    RankSet.DISTRIBUTED: RankSet.ALONE, RankSet.ALONE: RankSet.DISTRIBUTED,
}  # fmt: skip
_PARTIAL = (RankSet.MAIN, RankSet.OTHERS, RankSet.SOME)


@dataclass(frozen=True, slots=True)
class Condition:
    """What a test says about ranks; `sure` where it says nothing else besides and was followed to a rank.

    `only` is the one rank for which it can hold, where the test names it.
    """

    which: RankSet
    sure: bool = True
    only: int | None = None

    @property
    def partial(self) -> bool:
        """It holds for some ranks and not for others."""
        return self.which in _PARTIAL

    def keeps_off(self, rank: int) -> bool:
        """Whether it surely does not hold for a rank."""
        if self.which is RankSet.SOME:
            return self.only is not None and rank != self.only
        return rank == 0 if self.which is RankSet.OTHERS else rank != 0 and self.which is RankSet.MAIN

    def negated(self) -> Condition:
        """The condition under which it fails."""
        return Condition(OPPOSITE[self.which], self.sure)


NOTHING = Condition(RankSet.ALL)


def all_of(parts: list[Condition]) -> Condition:
    """Conditions that all have to hold."""
    for which in (RankSet.ALONE, *_PARTIAL, RankSet.DISTRIBUTED):
        found = [c for c in parts if c.which is which]
        if found:
            return Condition(which, any(c.sure for c in found), found[0].only)
    return NOTHING


def any_of(parts: list[Condition]) -> Condition:
    """In a distributed run the `ALONE` alternatives are false; an unrelated alternative makes the rest unsure."""
    kept = [c for c in parts if c.which is not RankSet.ALONE]
    if not kept:
        return Condition(RankSet.ALONE)
    partial = [c for c in kept if c.partial]
    if not partial:
        return kept[0] if all(c.which is kept[0].which for c in kept) else NOTHING
    same = all(c.which is partial[0].which for c in kept)
    return Condition(partial[0].which if same else RankSet.SOME, same and all(c.sure for c in kept))


def common(conditions: list[Condition]) -> Condition:
    """What all of them say alike."""
    same = {c.which for c in conditions} == {conditions[0].which}
    return Condition(conditions[0].which, all(c.sure for c in conditions)) if same else NOTHING
