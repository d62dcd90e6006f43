"""Numbers that stand in texts: of a few digits each, as Python makes none of thousands."""

from __future__ import annotations

_MOST_DIGITS = 18


def whole(text: str) -> int | None:
    """The whole number that a text is, `-` in front or not; None for any other text."""
    digits = text.removeprefix("-")
    # Letters of other scripts count as digits, too, and some of them (`²`) are none to `int`.
    return int(text) if digits.isascii() and digits.isdecimal() and len(digits) <= _MOST_DIGITS else None
