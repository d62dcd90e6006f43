"""What only IPython understands, made into comments: every line stays where it is, and the rest is Python.

A line is looked at where a statement may begin alone, so that `%s` inside a text and a modulo inside brackets stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_MAGIC = re.compile(r"\s*(?:%{1,2}[A-Za-z_]|!|\?{1,2}\w|[\w.]+\s*=\s*(?:!|%[A-Za-z_])|[\w.]+\?{1,2}\s*$)")
_OPENING, _CLOSING = "([{", ")]}"


def without_magics(lines: Iterable[str]) -> tuple[str, ...]:
    """The lines with magics, shell commands and questions for help as comments."""
    reader = _Reader()
    return tuple(reader.read(line) for line in lines)


class _Reader:
    """Knows whether the next line begins a statement: no text, bracket or line before it is still open."""

    def __init__(self) -> None:
        self._quote = ""
        self._depth = 0
        self._continued = self._in_magic = False

    def read(self, line: str) -> str:
        begins = not (self._quote or self._depth or self._continued)
        if self._in_magic or (begins and _MAGIC.match(line)):
            goes_on, self._in_magic = self._in_magic, line.rstrip().endswith("\\")
            text = line.lstrip()
            indent = line[: len(line) - len(text)]
            # A block must not be left without a statement.
            return f"{indent}{'pass  # ' if indent and not goes_on else '# '}{text}"
        self._follow(line)
        return line

    def _follow(self, line: str) -> None:
        at = 0
        while at < len(line):
            letter = line[at]
            if letter == "\\":
                at += 2
                continue
            if self._quote:
                if line.startswith(self._quote, at):
                    at += len(self._quote) - 1
                    self._quote = ""
            elif letter == "#":
                break
            elif letter in "'\"":
                self._quote = letter * 3 if line.startswith(letter * 3, at) else letter
                at += len(self._quote) - 1
            else:
                self._depth = max(0, self._depth + (letter in _OPENING) - (letter in _CLOSING))
            at += 1
        self._continued = at > len(line)
        if len(self._quote) == 1 and not self._continued:
            # A text in single quotes ends with its line, whether its author closed it or not.
            self._quote = ""
