"""The unified diff of one text: read, applied to the letter, written. What `diff -u` writes and `patch` reads.

A hunk is applied where it says that it stands, and only if every line of it is there: one that fits by luck shows
something else than its author meant. Knows nothing of submissions; nothing here opens a file.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_NO_NEWLINE = "\\ No newline at end of file\n"


class DiffError(ValueError):
    """A diff that can't be read or doesn't apply; `line` of it is where, 1-based."""

    def __init__(self, line: int, text: str) -> None:
        super().__init__(text)
        self.line = line


class MismatchError(DiffError):
    """The text is not the one that the diff was made of."""


@dataclass(frozen=True, slots=True)
class Hunk:
    """One change: `old` lines, context included, are replaced by `new` ones; each with its line feed.

    Attributes:
        line: of the hunk's header in the diff, 1-based.
        old_start: index of the first old line, from 0.
        new_start: index that the first new line gets, from 0.
        old: lines of the old text, each with its own line in the diff.
        new: lines of the new text.
    """

    line: int
    old_start: int
    new_start: int
    old: tuple[tuple[int, str], ...]
    new: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Diff:
    """What makes one text of another.

    Attributes:
        comments: lines above it that begin with `#`.
        line: of the line that names the old text.
        old_name, new_name: as written after `---` and `+++`.
        hunks: in the order of the text, at least one.
    """

    comments: tuple[str, ...]
    line: int
    old_name: str
    new_name: str
    hunks: tuple[Hunk, ...]


def read_diff(text: str) -> Diff:
    """Read the diff of one text.

    Raises:
        DiffError: it is no unified diff of one text, or it changes nothing.
    """
    lines = split(text)
    begin = next((n for n, line in enumerate(lines) if line.strip() and not line.startswith("#")), len(lines))
    if begin == len(lines):
        raise DiffError(max(1, begin), "holds no diff; it begins with a line such as `--- accepted/train.py`")
    for number, (sign, meant) in enumerate(
        (("---", "the script it changes"), ("+++", "the result")), start=begin
    ):
        if number == len(lines) or not lines[number].startswith(f"{sign} "):
            raise DiffError(number + 1, f"`{sign} ` and the name of {meant} must stand here")
    hunks: list[Hunk] = []
    at = begin + 2
    while at < len(lines):
        header = _HUNK.match(lines[at])
        if header is None:
            wanted = "one begins with `@@ -1,4 +1,5 @@` and has as many lines as that says"
            raise DiffError(at + 1, f"{_quoted(lines[at])} is in no hunk: {wanted}")
        hunk, at = _read_hunk(lines, at, header)
        hunks.append(hunk)
    if not hunks:
        raise DiffError(begin + 1, "changes nothing: no hunk follows")
    comments = tuple(line.rstrip() for line in lines[:begin] if line.strip())
    return Diff(comments, begin + 1, _name(lines[begin]), _name(lines[begin + 1]), tuple(hunks))


def apply(diff: Diff, text: str) -> str:
    """The new text.

    Raises:
        MismatchError: a line is not where the diff says; it is not searched for.
    """
    lines, result = split(text), list[str]()
    done = 0
    for hunk in diff.hunks:
        if hunk.old_start < done:
            raise MismatchError(hunk.line, "begins before the end of the hunk above it")
        for index, (number, wanted) in enumerate(hunk.old, start=hunk.old_start):
            if index >= len(lines):
                raise MismatchError(
                    number, f"{diff.old_name} ends at line {len(lines)}, before {_quoted(wanted)}"
                )
            if lines[index] != wanted:
                raise MismatchError(
                    number, _unlike(f"line {index + 1} of {diff.old_name}", lines[index], wanted)
                )
        result += lines[done : hunk.old_start]
        if len(result) != hunk.new_start:
            said = f"the hunk begins at line {len(result) + 1} of the result, not {hunk.new_start + 1}"
            raise MismatchError(hunk.line, said)
        result += hunk.new
        done = hunk.old_start + len(hunk.old)
    return "".join(result + lines[done:])


def apply_anywhere(diff: Diff, text: str) -> str:
    """The new text where lines may have moved: each hunk goes to the place of its old lines that is nearest.

    Raises:
        MismatchError: the old lines of a hunk are gone.
    """
    lines, result = split(text), list[str]()
    done, moved = 0, 0
    for hunk in diff.hunks:
        old = [line for _, line in hunk.old]
        places = [n for n in range(done, len(lines) - len(old) + 1) if lines[n : n + len(old)] == old]
        if not places:
            said = f"{diff.old_name} no longer has the lines of this hunk, neither here nor elsewhere"
            raise MismatchError(hunk.line, said)
        place = min(places, key=lambda n: abs(n - hunk.old_start - moved))
        result += [*lines[done:place], *hunk.new]
        done, moved = place + len(old), place - hunk.old_start
    return "".join(result + lines[done:])


def write_diff(old: str, new: str, old_name: str, new_name: str) -> str:
    """The diff that makes one text of another; "" where they are equal."""
    written = []
    for line in difflib.unified_diff(split(old), split(new), old_name, new_name):
        # An empty line of context as GNU diff's `--suppress-blank-empty` has it: editors strip blanks at ends of lines.
        ended = line if line.endswith("\n") else f"{line}\n{_NO_NEWLINE}"
        written.append("\n" if ended == " \n" else ended)
    return "".join(written)


def split(text: str) -> list[str]:
    """Lines with their ends; a line feed alone ends one, as in every diff."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _read_hunk(lines: Sequence[str], at: int, header: re.Match[str]) -> tuple[Hunk, int]:
    """The hunk whose header is line `at`, and the line after it."""
    begin, at = at, at + 1
    old_start, num_old, new_start, num_new = (
        int(part) if part is not None else 1 for part in header.groups()
    )
    old: list[tuple[int, str]] = []
    new: list[str] = []
    while at < len(lines) and (len(old) < num_old or len(new) < num_new):
        # An empty line stands for an empty line of context.
        line = lines[at] if lines[at].strip("\r\n") else f" {lines[at]}"
        ends_text = at + 1 < len(lines) and lines[at + 1].startswith("\\")
        content = line[1:].removesuffix("\n") if ends_text else line[1:]
        if line[0] not in " -+":
            break
        if line[0] != "+":
            old.append((at + 1, content))
        if line[0] != "-":
            new.append(content)
        at += 2 if ends_text else 1
    if (len(old), len(new)) != (num_old, num_new):
        said = f"the hunk says {num_old} old and {num_new} new lines and has {len(old)} and {len(new)}"
        raise DiffError(begin + 1, said)
    # A side without lines names the line that stands before it.
    return Hunk(begin + 1, old_start - bool(num_old), new_start - bool(num_new), tuple(old), tuple(new)), at


def _name(line: str) -> str:
    """A name without what `diff` writes after it, such as the date."""
    return line[4:].partition("\t")[0].strip()


def _unlike(place: str, line: str, wanted: str) -> str:
    is_, not_ = _quoted(line), _quoted(wanted)
    return (
        f"{place} is {is_}, not {not_}"
        if is_ != not_
        else f"{place} and {not_} differ in blanks at their ends"
    )


def _quoted(line: str) -> str:
    return f"`{line.rstrip()[:60]}`" if line.strip() else "a blank line"
