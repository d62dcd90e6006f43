"""Advice as edits: what to write where, so that a program can write it for the learner.

A fix is offered only where it is certain what to write; what needs a decision stays a hint in words. Nothing here
opens a file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from grader.model.submission import Submission

_LINE_END = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class Edit:
    """Text that takes the place of a range; places are counted like those of a finding.

    Attributes:
        path: file path relative to the submission's folder, POSIX form.
        line, column: where the range begins: 1-based, columns in bytes of UTF-8.
        end_line, end_column: where it ends; what stands there itself is kept. Equal to the beginning: an insertion.
        text: what to write there; its lines end in a newline, whatever the file's own end in.
    """

    path: str
    line: int
    column: int
    end_line: int
    end_column: int
    text: str

    @property
    def begin(self) -> tuple[int, int]:
        """Where the range begins."""
        return (self.line, self.column)

    @property
    def end(self) -> tuple[int, int]:
        """Where it ends."""
        return (self.end_line, self.end_column)

    def overlaps(self, other: Edit) -> bool:
        """Whether the two cannot both be made: they share text, or write at one place."""
        if self.path != other.path:
            return False
        return self.begin == other.begin or (self.begin < other.end and other.begin < self.end)


@dataclass(frozen=True, slots=True)
class Fix:
    """Edits that mend one finding and belong together: all of them are made, or none.

    Attributes:
        summary: what they do, one sentence in plain text, code between backquotes.
        edits: at least one; no two overlap.
    """

    summary: str
    edits: tuple[Edit, ...]

    def overlaps(self, other: Fix) -> bool:
        """Whether one of its edits overlaps one of the other's."""
        return any(mine.overlaps(theirs) for mine in self.edits for theirs in other.edits)


def mended(submission: Submission, fixes: Iterable[Fix]) -> Submission:
    """The submission with all edits of some fixes made; each file keeps its own line ends.

    Raises:
        ValueError: edits overlap, or lie outside the text that they are for.
    """
    by_path: dict[str, list[Edit]] = {}
    for fix in fixes:
        for edit in fix.edits:
            by_path.setdefault(edit.path, []).append(edit)
    unknown = by_path.keys() - {file.path for file in submission.files}
    if unknown:
        raise ValueError(f"there is no file {min(unknown)!r} to edit")
    files = tuple(
        replace(file, text=_edited(file.text, by_path[file.path])) if file.path in by_path else file
        for file in submission.files
    )
    return replace(submission, files=files)


def line_end(text: str) -> str:
    """What the lines of a text end in, by its first one; a newline where it has no line end."""
    found = _LINE_END.search(text)
    return found[0] if found else "\n"


def _edited(text: str, edits: list[Edit]) -> str:
    data = text.encode("utf-8", "surrogatepass")
    line_ends = list(re.finditer(rb"\r\n|\r|\n", data))
    starts = [0, *(found.end() for found in line_ends)]
    ends = [*(found.start() for found in line_ends), len(data)]
    own = line_end(text)

    def offset(line: int, column: int) -> int:
        if not 1 <= line <= len(starts) or not 0 <= column - 1 <= ends[line - 1] - starts[line - 1]:
            raise ValueError(f"line {line}, column {column} lies outside the text")
        return starts[line - 1] + column - 1

    pieces: list[bytes] = []
    done, begun = 0, -1
    for edit in sorted(edits, key=lambda one: (one.begin, one.end)):
        first, last = offset(*edit.begin), offset(*edit.end)
        if first < done or last < first or first == begun:
            raise ValueError(f"edits overlap in line {edit.line}")
        pieces += [data[done:first], edit.text.replace("\n", own).encode("utf-8", "surrogatepass")]
        done, begun = last, first
    return b"".join((*pieces, data[done:])).decode("utf-8", "surrogatepass")
