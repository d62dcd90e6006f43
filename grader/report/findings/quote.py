"""Source lines as they are quoted beside a finding: a few lines of context, the lines to blame marked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from textwrap import dedent

from grader.model.finding import Location
from grader.model.notebook_lines import cell_line, shown_number
from grader.model.submission import Submission
from grader.report.safe_text import cut

_TAB = 4
_MAX_MARKED = 6
_LONGEST_LINE = 300


@dataclass(frozen=True, slots=True)
class QuotedLine:
    """One line: its number (in its cell), its text without the block's common indentation, whether it is to blame.

    `caret` is the 0-based position in `text` at which a place begins; None where none does or the column is unknown.
    """

    number: int
    text: str
    hit: bool
    caret: int | None = None


@dataclass(frozen=True, slots=True)
class Quote:
    """One block of lines around one place, or around several that are close together.

    Attributes:
        locations: the places, the most telling first.
        place: where they are: `train.py:41`, `train.py:41–43`, `train.py:41, 52` or `cell 4, line 12`.
        lines: empty where the submission has no such line.
        num_left_out: blamed lines that are not quoted because a place is long.
    """

    locations: tuple[Location, ...]
    place: str
    lines: tuple[QuotedLine, ...]
    num_left_out: int = 0

    @property
    def location(self) -> Location:
        """The most telling place."""
        return self.locations[0]


def quotes(submission: Submission, places: Iterable[Location], context: int) -> tuple[Quote, ...]:
    """Quotes of the places in their order, with up to `context` lines around; places that touch share one."""
    clusters: list[list[Location]] = []
    for place in places:
        near = next((c for c in clusters if any(_touch(place, other, context) for other in c)), None)
        if near is None:
            clusters.append([place])
        else:
            near.append(place)
    return tuple(_quote(submission, tuple(cluster), context) for cluster in clusters)


def _touch(one: Location, other: Location, context: int) -> bool:
    apart = max(one.line, other.line) - min(_shown_end(one), _shown_end(other)) - 1
    return one.path == other.path and apart <= 2 * context


def _shown_end(place: Location) -> int:
    return min(place.end_line, place.line + _MAX_MARKED - 1)


def _quote(submission: Submission, places: tuple[Location, ...], context: int) -> Quote:
    source = submission.lines(places[0].path)
    known = [place for place in places if 1 <= place.line <= len(source)]
    if not known:
        return Quote(places, _place(submission, places), ())
    last = max(min(_shown_end(place), len(source)) for place in known)
    left_out = max(min(place.end_line, len(source)) for place in known) - last
    begin = max(1, min(place.line for place in known) - context)
    end = last if left_out else min(len(source), last + context)
    quoted = [cut(line, _LONGEST_LINE) for line in source[begin - 1 : end]]
    block = dedent("\n".join(line.expandtabs(_TAB).rstrip() for line in quoted)).split("\n")
    hits = {number for place in known for number in range(place.line, _shown_end(place) + 1)}
    columns = {place.line: place.column for place in reversed(known)}
    return Quote(
        places,
        _place(submission, places),
        tuple(
            QuotedLine(
                shown_number(submission, places[0].path, number),
                text,
                number in hits,
                _caret(line, columns.get(number, 0), text),
            )
            for number, (line, text) in enumerate(zip(quoted, block, strict=True), start=begin)
        ),
        left_out,
    )


def _place(submission: Submission, places: tuple[Location, ...]) -> str:
    spans: dict[str, list[str]] = {}
    for place in places:
        found = cell_line(submission, place.path, place.line)
        head, first = (
            (f"{place.path}:", place.line) if found is None else (f"cell {found[0]}, line ", found[1])
        )
        last = first + place.end_line - place.line
        spans.setdefault(head, []).append(f"{first}–{last}" if last > first else f"{first}")
    return ", ".join(head + ", ".join(dict.fromkeys(lines)) for head, lines in spans.items())


def _caret(line: str, column: int, shown: str) -> int | None:
    if not 1 <= column <= len(line):
        return None
    cut = len(line.expandtabs(_TAB).rstrip()) - len(shown)
    position = len(line[: column - 1].expandtabs(_TAB)) - cut
    return position if 0 <= position < len(shown) else None
