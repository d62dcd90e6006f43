"""Why a file cannot be read as Python, in words for whoever hands it in and for a grade."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from grader.model.finding import EvidenceKind, Finding, Location, Severity

SYNTAX = "SYNTAX"
PYTHON = f"Python {sys.version_info.major}.{sys.version_info.minor}"
"""The version that reads and runs scripts here: what a newer one takes may be an error to it."""
_SHORTER = "Hand in a file that holds your training code alone: no generated code, and no data written into the text."
_SIMPLER = (
    "Checking follows values from line to line, and calls from function to function. It takes long where very many of "
    "them lead to each other: hand in the code that your training uses, and no generated code."
)
CHECKED = "checked"
"""The stage of reading after Python's own: Python can read a file, and the checks took more than the limit."""


@dataclass(frozen=True, slots=True)
class SyntaxProblem:
    """Why a file cannot be read as Python; `column` is 1-based.

    `limit`: what was not enough to read it, such as `3 s of processor time`; "" where Python says that it is none.
    `checked`: Python can read it, and the checks took more than the limit.
    `cell`: the line as the author of a notebook knows it, `cell 4, line 12`; "" for scripts.
    """

    path: str
    line: int
    column: int
    message: str
    quote: str
    limit: str = ""
    cell: str = ""
    checked: bool = False

    @classmethod
    def of_unread(cls, path: str, limit: str, size: str, stage: str = "") -> SyntaxProblem:
        """Of a file that took more than `limit`; `size`: how large it is, in words; the rest as in `unread`."""
        return cls(path, 1, 1, size, "", limit, checked=stage == CHECKED)

    @property
    def unread(self) -> tuple[str, ...] | None:
        """What `of_unread` makes the same problem of; None for a file that is no Python."""
        if not self.limit:
            return None
        return (self.path, self.limit, self.message, *([CHECKED] if self.checked else []))

    @property
    def refusal(self) -> str:
        """Why such a submission is not taken, and what to do instead."""
        if self.limit:
            return f"{self._problem}, so nothing was handed in and no attempt is spent. {self._unread_hint}"
        return (
            f"{self._problem}. Nothing of it can run, so nothing was handed in and no attempt is spent. Mend that "
            "line, then hand in again."
        )

    def finding(self) -> Finding:
        """The one finding that such a submission gets."""
        return Finding(
            code=SYNTAX,
            severity=Severity.ERROR,
            evidence=EvidenceKind.SOURCE,
            message=f"{self._problem}, so nothing was judged."
            if self.limit
            else f"{self._problem}. Nothing of it can run, so nothing else was judged.",
            hint=self._unread_hint
            if self.limit
            else f"Run `python -m py_compile` on the file with {PYTHON}, mend the line it names and hand the file in "
            "again.",
            where=(Location(self.path, self.line, self.column),),
            details={"quote": self.quote},
        )

    @property
    def _unread_hint(self) -> str:
        return _SIMPLER if self.checked else _SHORTER

    @property
    def _problem(self) -> str:
        if self.checked:
            return f"`{self.path}` is valid {PYTHON}, but checking it took more than {self.limit}: {self.message}"
        if self.limit:
            return f"`{self.path}` could not be read within {self.limit}: {self.message}"
        place = self.cell or f"line {self.line}"
        return f"`{self.path}` is not valid {PYTHON}: {self.message} ({place}, column {self.column})"
