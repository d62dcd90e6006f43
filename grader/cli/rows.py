"""Rows on standard output: a table where all of it fits, else a line for each, so that nothing one types is broken."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

GAP = 2
MARKS = {True: ("✓", "green"), False: ("✗", "red"), None: ("–", "yellow")}


def mark(ok: bool | None) -> Text:
    """The sign that a row begins with; None: neither right nor wrong."""
    from rich.text import Text

    sign, style = MARKS[ok]
    return Text(sign, style=style)


def print_rows(
    console: Console, headings: Sequence[str], rows: Sequence[tuple[Text, *tuple[str, ...]]]
) -> None:
    """Print rows of a mark and texts; `headings`: one for each column, all of them "" for none."""
    from rich.cells import cell_len
    from rich.table import Table
    from rich.text import Text

    columns = zip(
        headings,
        *([cell if isinstance(cell, str) else cell.plain for cell in row] for row in rows),
        strict=True,
    )
    width = sum(max(map(cell_len, column)) + GAP for column in columns) - GAP
    if width > console.width:
        for first, *texts in rows:
            console.print(first + Text(" ") + Text("  ".join(filter(None, texts))), soft_wrap=True)
        return
    table = Table(box=None, pad_edge=False, show_header=any(headings))
    for heading in headings:
        table.add_column(heading)
    for first, *texts in rows:
        table.add_row(first, *map(Text, texts))
    console.print(table)
