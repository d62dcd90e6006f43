"""What a check saw: one frozen record per fault, and the words for how sure and how grave it is.

A finding never decides a verdict by itself; `evaluate.score` does, from severity and the task's rubric.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from grader.model.fix import Fix

SEEN_RIGHT = "seen_right"
"""Among a finding's details: codes of what the run showed to be right although it may look like the same fault."""


class Severity(StrEnum):
    """How grave a finding is; `error` gates acceptance, `review` is shown to staff only."""

    ERROR = "error"
    WARNING = "warning"
    HINT = "hint"
    REVIEW = "review"

    @property
    def rank(self) -> int:
        """0 for the gravest; sorts findings by what to mend first."""
        return list(Severity).index(self)


class EvidenceKind(StrEnum):
    """Where a finding's knowledge comes from."""

    SOURCE = "source"
    """Read from the text; nothing was executed."""
    TRACE = "trace"
    """Told by the probe inside the script's own processes."""
    OUTSIDE = "outside"
    """Seen by the supervisor, the kernel or the clock."""
    EVALUATION = "evaluation"
    """Measured by the trusted scorer."""


def family_of(code: str) -> str:
    """What a code is about: `DATA` for `DATA002`."""
    return code.rstrip("0123456789")


@dataclass(frozen=True, slots=True)
class Location:
    """A place in the submission.

    Attributes:
        path: file path relative to the submission's folder, POSIX form.
        line: first line, 1-based.
        column: first column, 1-based; 0 where unknown.
        end_line: last line, inclusive; equal to `line` where unknown.
        cell: how the author of a notebook knows the line, `cell 4, line 12`; "" for scripts.
    """

    path: str
    line: int
    column: int = 0
    end_line: int = 0
    cell: str = ""

    def __post_init__(self) -> None:
        if self.end_line < self.line:
            object.__setattr__(self, "end_line", self.line)

    def __str__(self) -> str:
        """As it is told: `train.py:41`, or by cell."""
        return self.cell or f"{self.path}:{self.line}"


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault (or hint) and how it was seen.

    Attributes:
        code: stable rule code, such as `DATA002`.
        severity: effective severity in this attempt.
        evidence: strongest kind of evidence behind it.
        message: what was seen (numbers, ranks, epochs) and why it matters; one to three sentences, plain text.
        hint: what to write instead; plain text, code between backquotes. May be empty.
        where: places in the submission, the most telling first; empty where no line is to blame.
        ranks: ranks concerned, sorted; empty means all or unknown.
        details: JSON-able facts behind "how was this seen" (first shared indices, differing fingerprints, …).
        confirmed: True when a second kind of evidence says the same.
        refuted: text of what the run showed instead, where a source finding was contradicted by the trace; else "".
        fix: the hint as edits, where it is certain what to write.
    """

    code: str
    severity: Severity
    evidence: EvidenceKind
    message: str
    hint: str = ""
    where: tuple[Location, ...] = ()
    ranks: tuple[int, ...] = ()
    details: dict[str, Any] = field(default_factory=dict)
    confirmed: bool = False
    refuted: str = ""
    fix: Fix | None = None

    @property
    def holds(self) -> bool:
        """Whether a person looks at the attempt because of it; a finding for staff may say that it only informs."""
        return self.severity is Severity.REVIEW and self.details.get("holds", True) is not False

    @property
    def subjects(self) -> tuple[str, ...]:
        """What a person looks at because of it, in words that learners may read: never what was compared, or how."""
        return tuple(map(str, self.details.get("subjects", ()))) or ("the script and its run",)

    @property
    def folded(self) -> dict[str, Severity]:
        """Faults that follow from it and are not told by themselves, and how grave each is."""
        known = self.details.get("milder", {})
        return {code: Severity(known.get(code, Severity.ERROR)) for code in self.details.get("explains", ())}

    @property
    def codes(self) -> frozenset[str]:
        """Its own code, and those of faults that follow from it and were folded into it."""
        return frozenset((self.code, *self.details.get("explains", ())))

    def concerns(self, codes: Collection[str]) -> bool:
        """Whether what asks for these codes is about it: not where the run showed all else that is asked for."""
        others = {*codes} - {self.code}
        return self.code in codes and not (others and others <= {*self.details.get(SEEN_RIGHT, ())})

    @property
    def location(self) -> Location | None:
        """The place to look at first."""
        return self.where[0] if self.where else None
