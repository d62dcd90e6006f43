"""Source lines as they are quoted beside a finding: a few lines of context, the line to blame marked."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import dedent

from grader.model.finding import Location
from grader.model.submission import Submission

_TAB = 4
_MAX_MARKED = 6


@dataclass(frozen=True, slots=True)
class Quote:
    """A place and its lines.

    Attributes:
        location: the place.
        lines: (line number, text without common indentation, whether it is to blame); empty where the submission has no
            such line.
        caret: 0-based position of the blamed column in the first marked line's text, None where unknown.
        marked_left_out: blamed lines that are not quoted because the place is long.
    """

    location: Location
    lines: tuple[tuple[int, str, bool], ...]
    caret: int | None
    marked_left_out: int = 0

    @property
    def place(self) -> str:
        """`train.py:41` or `train.py:41–43`."""
        first, last = self.location.line, self.location.end_line
        return f"{self.location.path}:{first}" + (f"–{last}" if last > first else "")


def quote(submission: Submission, location: Location, context: int) -> Quote:
    """The lines of a place, with up to `context` lines before and after it."""
    source = submission.lines(location.path)
    first, last = location.line, min(location.end_line, len(source))
    if not 1 <= first <= len(source):
        return Quote(location, (), None)
    shown_last = min(last, first + _MAX_MARKED - 1)
    left_out = last - shown_last
    begin = max(1, first - context)
    end = shown_last if left_out else min(len(source), last + context)
    chosen = [line.expandtabs(_TAB).rstrip() for line in source[begin - 1 : end]]
    block = dedent("\n".join(chosen)).split("\n")
    lines = tuple(
        (number, text, first <= number <= shown_last) for number, text in enumerate(block, start=begin)
    )
    return Quote(location, lines, _caret(source[first - 1], location.column, block[first - begin]), left_out)


def _caret(line: str, column: int, shown: str) -> int | None:
    if not 1 <= column <= len(line):
        return None
    cut = len(line.expandtabs(_TAB).rstrip()) - len(shown)
    position = len(line[: column - 1].expandtabs(_TAB)) - cut
    return position if 0 <= position < len(shown) else None
