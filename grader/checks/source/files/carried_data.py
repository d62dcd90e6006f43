"""Data that a text carries: weights, images or labels, written as base64, as hexadecimal digits or as lists of numbers.

A script is to learn from what it is given; what was learned elsewhere fits into a text of a hundred thousand
characters. Told by what the text is like, not by what it does with it: code and prose compress to half and less.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from grader.checks.source.script import Script

_PIECE_BYTES = 2048
_DENSE = 0.55
"""Of its size, what is left of a compressed piece: of code 0.5 at most, of hexadecimal digits 0.58, of base64 0.77."""
_DIGITS = 0.4
"""Of a piece: lists of numbers have as many digits; code has one in ten characters."""
_MOST_BYTES = 16 << 10
"""A network that tells images apart has more weights than this, and takes a byte for each at least."""


def carried_data(script: Script) -> str:
    """What a person should look at, in a sentence; "" where no file carries more than a table or two."""
    for tree in script.trees:
        pieces = list(_pieces(tree.text))
        size = sum(size for _, size in pieces)
        if size >= _MOST_BYTES:
            line = pieces[0][0]
            inside = [n.lineno for n in tree.root.body if n.lineno <= line <= (n.end_lineno or n.lineno)]
            return (
                f"From {tree.path}:{min(inside, default=line)} on, the text carries {size >> 10} KiB of data, "
                "compressed: a training script needs none."
            )
    return ""


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    """The line on which each piece ends that is data, and the piece's size when it is compressed."""
    raw, line = text.encode(errors="replace"), 1
    for begin in range(0, len(raw) - _PIECE_BYTES, _PIECE_BYTES):
        piece = raw[begin : begin + _PIECE_BYTES]
        line += piece.count(b"\n")
        size = len(zlib.compress(piece))
        digits = len(piece) - len(piece.translate(None, b"0123456789"))
        if size >= _DENSE * _PIECE_BYTES or digits >= _DIGITS * _PIECE_BYTES:
            yield line, size
