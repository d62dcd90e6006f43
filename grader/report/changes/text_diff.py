"""Two texts line by line: what was removed and added, as hunks for people, and where each line went."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from enum import StrEnum
from itertools import chain, islice, takewhile

MOST_MATCHED = 1000
"""Texts can be made for which matching lines takes cubic time; with this many it takes a second at the most."""
_CONTEXT = 3
_LONGEST_LINE = 300


class LineSign(StrEnum):
    """What became of a line, as a diff writes it."""

    KEPT = " "
    ADDED = "+"
    REMOVED = "-"


@dataclass(frozen=True, slots=True)
class DiffLine:
    """One line of a diff, with its number in both texts; None where it is not in that one."""

    sign: LineSign
    old_number: int | None
    new_number: int | None
    text: str


@dataclass(frozen=True, slots=True)
class DiffHunk:
    """Changed lines that are close together, with lines of context around them."""

    lines: tuple[DiffLine, ...]

    @property
    def header(self) -> str:
        """`@@ -12,7 +12,9 @@`."""
        old = [line.old_number for line in self.lines if line.old_number is not None]
        new = [line.new_number for line in self.lines if line.new_number is not None]
        return f"@@ -{old[0] if old else 0},{len(old)} +{new[0] if new else 0},{len(new)} @@"


@dataclass(frozen=True, slots=True)
class LineBlock:
    """Lines `old_start` to `old_end` of the old text that became the new text's; 0-based, ends not included."""

    equal: bool
    old_start: int
    old_end: int
    new_start: int
    new_end: int

    @property
    def num_lines(self) -> int:
        """Lines that it takes in a diff."""
        num_old = self.old_end - self.old_start
        return num_old if self.equal else num_old + self.new_end - self.new_start

    def first(self, most: int) -> LineBlock:
        """Of an equal block no more than the first lines."""
        cut = max(0, self.num_lines - most)
        return replace(self, old_end=self.old_end - cut, new_end=self.new_end - cut)

    def last(self, most: int) -> LineBlock:
        """Of an equal block no more than the last lines."""
        cut = max(0, self.num_lines - most)
        return replace(self, old_start=self.old_start + cut, new_start=self.new_start + cut)


@dataclass(frozen=True, slots=True)
class TextDiff:
    """Two texts and the blocks that make the one of the other; `context`: equal lines around what changed."""

    old: Sequence[str]
    new: Sequence[str]
    blocks: tuple[LineBlock, ...]
    context: int = _CONTEXT

    @classmethod
    def between(cls, old: Sequence[str], new: Sequence[str], most_matched: int = MOST_MATCHED) -> TextDiff:
        """Compare; where more lines lie between the first change and the last, all of them count as rewritten."""
        return cls(old, new, tuple(_blocks(old, new, most_matched)))

    @property
    def changed(self) -> tuple[LineBlock, ...]:
        """The blocks that are not equal."""
        return tuple(block for block in self.blocks if not block.equal)

    @property
    def num_added(self) -> int:
        """Lines that only the new text has."""
        return sum(block.new_end - block.new_start for block in self.changed)

    @property
    def num_removed(self) -> int:
        """Lines that only the old text has."""
        return sum(block.old_end - block.old_start for block in self.changed)

    @property
    def num_lines(self) -> int:
        """Lines of all hunks."""
        return sum(block.num_lines for group in self._groups() for block in group)

    @property
    def num_matched(self) -> int:
        """Lines whose partners had to be looked for."""
        if len(self.changed) < 2:
            return 0
        first, last = self.changed[0], self.changed[-1]
        return max(last.old_end - first.old_start, last.new_end - first.new_start)

    def hunks(self, most_lines: int) -> tuple[DiffHunk, ...]:
        """The first lines of the diff."""
        found, left = [], max(0, most_lines)
        for group in self._groups():
            if lines := tuple(islice(chain.from_iterable(map(self._lines, group)), left)):
                found.append(DiffHunk(lines))
            left -= len(lines)
        return tuple(found)

    def place(self, line: int, *, old: bool) -> tuple[int, int]:
        """What a line of the old text and one of the new have in common exactly where the one became the other."""
        for number, block in enumerate(self.blocks):
            start, end = (block.old_start, block.old_end) if old else (block.new_start, block.new_end)
            if start < line <= end:
                # Within a rewritten block nobody can say which line became which.
                return (number, line - start) if block.equal else (number, 0)
        return -1, line

    def _groups(self) -> Iterator[list[LineBlock]]:
        """Changed blocks that are close together, with lines of context around them."""
        group: list[LineBlock] = []
        for block in self.blocks:
            if not block.equal:
                group.append(block)
            elif not group:
                group = [block.last(self.context)]
            elif block.num_lines <= 2 * self.context and block is not self.blocks[-1]:
                group.append(block)
            else:
                yield [*group, block.first(self.context)]
                group = [block.last(self.context)]
        if any(not block.equal for block in group):
            yield group

    def _lines(self, block: LineBlock) -> Iterator[DiffLine]:
        if block.equal:
            for index in range(block.num_lines):
                old, new = block.old_start + index, block.new_start + index
                yield DiffLine(LineSign.KEPT, old + 1, new + 1, _short(self.old[old]))
            return
        for index in range(block.old_start, block.old_end):
            yield DiffLine(LineSign.REMOVED, index + 1, None, _short(self.old[index]))
        for index in range(block.new_start, block.new_end):
            yield DiffLine(LineSign.ADDED, None, index + 1, _short(self.new[index]))


def _blocks(old: Sequence[str], new: Sequence[str], most_matched: int) -> Iterator[LineBlock]:
    begin = _num_equal(zip(old, new, strict=False))
    rest = min(len(old), len(new)) - begin
    end = _num_equal(zip(reversed(old[len(old) - rest :]), reversed(new[len(new) - rest :]), strict=True))
    if begin:
        yield LineBlock(True, 0, begin, 0, begin)
    a, b = old[begin : len(old) - end], new[begin : len(new) - end]
    if max(len(a), len(b)) > most_matched:
        yield LineBlock(False, begin, begin + len(a), begin, begin + len(b))
    else:
        for tag, i1, i2, j1, j2 in SequenceMatcher(None, a, b).get_opcodes():
            yield LineBlock(tag == "equal", begin + i1, begin + i2, begin + j1, begin + j2)
    if end:
        yield LineBlock(True, len(old) - end, len(old), len(new) - end, len(new))


def _num_equal(pairs: Iterable[tuple[str, str]]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _short(line: str) -> str:
    return line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}…"
