"""A run that ended badly, laid out for diagnosis: who failed first, what the others did then, how to say it.

Holds the facts and the shape of the sentences that all diagnoses share; which of them fits is theirs to say. Decides
no verdict and costs no points.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from grader.checks.evidence import Evidence
from grader.checks.phrases import listed, ranks
from grader.checks.run.endings.rank_failure import RankFailure, rank_failures
from grader.checks.run.endings.rank_position import RankPosition, rank_positions
from grader.model.diagnosis import Diagnosis
from grader.model.finding import Location
from grader.model.run import Ending

_DISAGREED = re.compile(
    r"op\.preamble|preamble\.length|[Mm]ismatch(ed)? (between )?collective|[Cc]ollective.{0,40}mismatch"
    r"|Detected mismatch|Received data size doesn't match expected size"
)


@dataclass(frozen=True, slots=True)
class FailedRun:
    """What diagnoses look at.

    Attributes:
        evidence: all evidence of the run.
        failures: ranks that ended with an error of their own, the first cause first.
        positions: every rank's last known place, sorted by rank.
    """

    evidence: Evidence
    failures: tuple[RankFailure, ...] = field(init=False)
    positions: tuple[RankPosition, ...] = field(init=False)

    def __post_init__(self) -> None:
        failed = rank_failures(self.evidence)
        object.__setattr__(self, "failures", failed)
        object.__setattr__(self, "positions", rank_positions(self.evidence, failed))

    @property
    def ending(self) -> Ending:
        """How the run ended."""
        return self.evidence.record.ending

    @property
    def cause(self) -> RankFailure | None:
        """The failure that no other one explains, None where no rank failed or all only lost their partners."""
        return self.failures[0] if self.failures and not self.failures[0].follows else None

    @property
    def alike(self) -> tuple[RankFailure, ...]:
        """The first cause and every other rank that failed in the same way, sorted by rank."""
        cause = self.cause
        found = (f for f in self.failures if cause is not None and cause.same(f))
        return tuple(sorted(found, key=lambda f: f.rank))

    @property
    def parted(self) -> bool:
        """Ranks did not meet in a collective: they stood still, lost each other, or exchanged what didn't fit."""
        if self.ending is Ending.DEADLOCKED:
            return self.cause is None
        if self.ending is not Ending.CRASHED:
            return False
        return self.cause is None or self.disagreed

    @property
    def disagreed(self) -> bool:
        """The first failure says that what one rank sent was not what the other expected."""
        return self.cause is not None and _DISAGREED.search(self.cause.message) is not None

    @property
    def words(self) -> str:
        """What the first cause's exception says, one short line; "" where none does."""
        return self.cause.words if self.cause is not None else ""

    def saying(self, words: re.Pattern[str], *types: str) -> re.Match[str] | None:
        """Whether the first cause's message holds some words (and is of one of the types)."""
        cause = self.cause
        if cause is None or (types and cause.type not in types):
            return None
        return words.search(cause.message)

    def logged(self, words: re.Pattern[str]) -> re.Match[str] | None:
        """Whether the first cause's standard error holds some words; where a rank says more than its exception."""
        cause = self.cause
        if cause is None or cause.rank >= len(self.evidence.logs):
            return None
        return words.search(self.evidence.logs[cause.rank][1])

    def crash(
        self,
        *,
        title: str,
        what: str,
        why: str,
        hint: str,
        where: tuple[Location, ...] = (),
        details: dict[str, Any] | None = None,
    ) -> Diagnosis:
        """A diagnosis of the first cause in two sentences.

        Args:
            title: a few words.
            what: what the failing ranks did, past tense, after "Rank 1", fit for one rank and for several; the line
                and the others' fate are added.
            why: the second sentence, without its full stop.
            hint: what to write instead.
            where: the places to blame where they are not the line that failed.
            details: facts beside those of the exception.
        """
        failed = self.alike
        if len(failed) > 1 and what.startswith("was "):
            what = f"were {what.removeprefix('was ')}"
        own = where or tuple(dict.fromkeys(p for f in failed for p in f.where))
        line = f" at {listed(_named(p) for p in own[:3])}" if own else ""
        # A comma is there to set the line apart.
        what = what if line else what.rstrip(",")
        others, elsewhere = self._others({f.rank for f in failed})
        cause = failed[0]
        return Diagnosis(
            id="",
            title=title,
            explanation=f"{ranks(f.rank for f in failed)} {what}{line}{others}. {why}.",
            hint=hint,
            where=tuple(dict.fromkeys((*own, *elsewhere))),
            ranks=tuple(f.rank for f in failed),
            details={
                "exception": cause.type,
                "message": cause.message[:400],
                "exit_code": cause.exit_code,
                **(details or {}),
            },
        )

    def parting(
        self,
        *,
        title: str,
        what: str,
        why: str,
        hint: str,
        where: tuple[Location, ...],
        ranks: tuple[int, ...],
        details: dict[str, Any] | None = None,
    ) -> Diagnosis:
        """A diagnosis of ranks that did not meet, in two sentences; their last places are added to where."""
        return Diagnosis(
            id="",
            title=title,
            explanation=f"{what}. {why}.",
            hint=hint,
            where=tuple(dict.fromkeys((*where, *(p for s in self.positions for p in s.where)))),
            ranks=tuple(sorted(set(ranks))),
            details={
                "ranks": {str(s.rank): s.sentence(name=False) for s in self.positions},
                **(details or {}),
            },
        )

    def _others(self, failed: set[int]) -> tuple[str, tuple[Location, ...]]:
        """What became of the other ranks, as a continued sentence, and where."""
        rest = [s for s in self.positions if s.rank not in failed]
        if not rest:
            return "", ()
        return f"; {positions_text(rest, then=True)}", tuple(dict.fromkeys(p for s in rest for p in s.where))


def positions_text(rows: list[RankPosition] | tuple[RankPosition, ...], *, then: bool = False) -> str:
    """Where ranks were at last, those at the same place together: `rank 0 waited in … at …, ranks 1 and 2 …`."""
    groups: dict[str, list[int]] = {}
    for row in rows:
        groups.setdefault(row.sentence(name=False, then=then), []).append(row.rank)
    parts = [f"{ranks(numbers).lower()} {fate}" for fate, numbers in list(groups.items())[:6]]
    return ", ".join(parts[:-1]) + (" and " if parts[:-1] else "") + parts[-1] if parts else ""


def named(places: tuple[Location, ...]) -> str:
    """` at `train.py:41``, "" for no place."""
    return f" at {_named(places[0])}" if places else ""


def _named(where: Location) -> str:
    return f"`{where.path}:{where.line}`"
