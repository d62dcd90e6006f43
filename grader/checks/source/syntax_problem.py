"""Why a file cannot be read as Python, in words for whoever hands it in and for a grade."""

from __future__ import annotations

from dataclasses import dataclass

from grader.model.finding import EvidenceKind, Finding, Location, Severity

SYNTAX = "SYNTAX"
_SHORTER = "Hand in a file that holds your training code alone: no generated code, and no data written into the text."


@dataclass(frozen=True, slots=True)
class SyntaxProblem:
    """Why a file cannot be read as Python; `column` is 1-based.

    `limit`: what was not enough to read it, such as `3 s of processor time`; "" where Python says that it is none.
    `cell`: the line as the author of a notebook knows it, `cell 4, line 12`; "" for scripts.
    """

    path: str
    line: int
    column: int
    message: str
    quote: str
    limit: str = ""
    cell: str = ""

    @classmethod
    def of_unread(cls, path: str, limit: str, size: str) -> SyntaxProblem:
        """Of a file that took more than `limit`; `size`: how large it is, in words."""
        return cls(path, 1, 1, size, "", limit)

    @property
    def unread(self) -> tuple[str, str, str] | None:
        """What `of_unread` makes the same problem of; None for a file that is no Python."""
        return (self.path, self.limit, self.message) if self.limit else None

    @property
    def refusal(self) -> str:
        """Why such a submission is not taken, and what to do instead."""
        if self.limit:
            return f"{self._problem}, so nothing was handed in and no attempt is spent. {_SHORTER}"
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
            message=f"{self._problem}, so nothing else was judged."
            if self.limit
            else f"{self._problem}. Nothing of it can run, so nothing else was judged.",
            hint=_SHORTER
            if self.limit
            else "Run `python -m py_compile` on the file, mend the line it names and hand the file in again.",
            where=(Location(self.path, self.line, self.column),),
            details={"quote": self.quote},
        )

    @property
    def _problem(self) -> str:
        if self.limit:
            return f"`{self.path}` could not be read within {self.limit}: {self.message}"
        place = self.cell or f"line {self.line}"
        return f"`{self.path}` is not valid Python: {self.message} ({place}, column {self.column})"
