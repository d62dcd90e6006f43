"""CSV files that a spreadsheet may open: no cell starts a formula, whatever somebody chose as their name.

Bytes are UTF-8 with a byte order mark, as spreadsheets expect it. Numbers stay numbers.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

from grader.report.safe_text import one_line

Value = str | int | float | None
# What spreadsheets take for the beginning of a formula, their full-width forms included; a leading blank hides nothing.
_STARTERS = "=+-@＝＋－＠|%"


def safe_cell(text: str) -> str:
    """The text as a cell that is read as text: invisible characters made visible, an apostrophe before a formula."""
    shown = one_line(text)
    # `one_line` marks tabs, newlines and other controls, so what could be skipped over before a starter is a space.
    bare = shown.lstrip(" '\"\u00a0\u3000")
    return f"'{shown}" if bare.startswith(tuple(_STARTERS)) else shown


def to_csv(header: Sequence[str], rows: Iterable[Sequence[Value]]) -> bytes:
    """A table as CSV; texts are `quoted`, None is an empty cell, numbers have a point."""
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    writer.writerow([safe_cell(cell) for cell in header])
    for row in rows:
        writer.writerow([_cell(value) for value in row])
    return out.getvalue().encode("utf-8-sig", "replace")


def _cell(value: Value) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return safe_cell(value)
    if isinstance(value, int):
        return str(value)
    return f"{value:.4f}".rstrip("0").rstrip(".")
