"""Where in a TOML file a value stands: `tomllib` gives values without lines, and an author needs the line.

Knows just enough TOML to follow tables and keys of a file that `tomllib` has already accepted; never judges a value.
"""

from __future__ import annotations

import re
from typing import TypeAlias

Key: TypeAlias = tuple[str | int, ...]

_PART = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*')"""
_DOTTED = rf"{_PART}(?:\s*\.\s*{_PART})*"
_HEADER = re.compile(rf"\s*(\[\[|\[)\s*({_DOTTED})\s*\]")
_ASSIGNMENT = re.compile(rf"\s*({_DOTTED})\s*=\s*")
_TOKEN = re.compile(r'"""|\'\'\'|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|#[^\n]*|[\[\]{}]')


def lines_of(text: str) -> dict[Key, int]:
    """Line of every table and of every key outside inline tables, 1-based.

    Elements of an array of tables are counted from 0: `("rubric", 2, "points")`.
    """
    found: dict[Key, int] = {}
    counts: dict[Key, int] = {}
    table: Key = ()
    depth, until = 0, ""
    for number, line in enumerate(text.splitlines(), start=1):
        rest = line
        if not depth and not until:
            if header := _HEADER.match(line):
                table = _indexed(_parts(header[2]), counts, is_array=header[1] == "[[")
                for length in range(1, len(table) + 1):
                    found.setdefault(table[:length], number)
                continue
            if assignment := _ASSIGNMENT.match(line):
                key = table + _parts(assignment[1])
                for length in range(len(table) + 1, len(key) + 1):
                    found.setdefault(key[:length], number)
                rest = line[assignment.end() :]
        depth, until = _after(rest, depth, until)
    return found


def line_of(lines: dict[Key, int], key: Key) -> int:
    """Line of a key, or of the nearest thing around it; 1 where nothing is known."""
    for length in range(len(key), 0, -1):
        if key[:length] in lines:
            return lines[key[:length]]
    return 1


def _parts(dotted: str) -> Key:
    return tuple(part.strip("\"'") for part in re.findall(_PART, dotted))


def _indexed(parts: Key, counts: dict[Key, int], *, is_array: bool) -> Key:
    """A header's key with the index of every array of tables on its way put in."""
    key: Key = ()
    for position, part in enumerate(parts):
        key = (*key, part)
        if is_array and position == len(parts) - 1:
            counts[key] = counts.get(key, -1) + 1
        if key in counts:
            key = (*key, counts[key])
    return key


def _after(rest: str, depth: int, until: str) -> tuple[int, str]:
    """Bracket depth and open multi-line string after a line."""
    position = 0
    while position < len(rest):
        if until:
            end = rest.find(until, position)
            if end < 0:
                return depth, until
            position, until = end + 3, ""
            continue
        token = _TOKEN.search(rest, position)
        if token is None or token[0].startswith("#"):
            break
        position = token.end()
        if token[0] in {'"""', "'''"}:
            until = token[0]
        elif token[0] in "[{":
            depth += 1
        elif token[0] in "]}":
            depth -= 1
    return depth, until
