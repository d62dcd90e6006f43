"""Make any text harmless and honest to look at: what cannot be seen is shown as a visible mark.

Learners' output may hold escape sequences that repaint a terminal, bidirectional controls that reorder a line, NUL
bytes and lone surrogates. Nothing here removes a character silently, and nothing here knows HTML.
"""

from __future__ import annotations

import re

# Everything that has a shape of its own stays; the rest is looked at one character at a time.
_SUSPECT = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160"
    "\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufdd0-\ufdef"
    "\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\U000110bd\U000110cd\U00013430-\U0001343f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_DELETE = 0x7F


def visible(text: str) -> str:
    """The text with control, format and otherwise invisible characters replaced by visible marks.

    Newlines and tabs stay. C0 controls become their Unicode control pictures (ESC is `␛`), all others `‹U+202E›`.
    """
    # Of most texts that reach a page this is known at once.
    if text.isascii() and text.isprintable():
        return text
    return _SUSPECT.sub(_mark, text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """`visible`, with newlines and tabs marked as well: for table cells, names and headings."""
    if text.isascii() and text.isprintable():
        return text
    return visible(text).replace("\n", "␤").replace("\t", "␉")


def _mark(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    if code == _DELETE:
        return "␡"
    return f"‹U+{code:04X}›"


def cut(line: str, most: int) -> str:
    """A line of at most so many characters, with a mark where there were more."""
    return line if len(line) <= most else f"{line[:most]}…"
