"""A terminal as reports write to it: wrapped, indented text, tables, quoted lines, with or without Unicode and colour.

Every text is made visible before it is printed, so that a learner's output can never steer the terminal. Knows nothing
of grades.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.console import Console, RenderableType
from rich.text import Text

from grader.report.findings.quote import Quote
from grader.report.safe_text import one_line, visible
from grader.report.words import wording

if TYPE_CHECKING:
    from rich.table import Table

STYLES = {
    "good": "bold green",
    "bad": "bold red",
    "warn": "bold yellow",
    "hint": "bold blue",
    "quiet": "dim",
}
# Three columns before a card's text, seven for a quoted line's number and marker.
_QUOTE_INDENT = 10
_PLAIN_SYMBOLS = {"good": "ok", "bad": "x", "warn": "!", "quiet": "-"}


class TerminalWriter:
    """A console that knows whether it can show more than ASCII."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.unicode = console.encoding.lower().startswith("utf")

    def symbol(self, tone: str) -> str:
        """The mark of a tone: a tick, a cross, …."""
        return (wording.SYMBOLS if self.unicode else _PLAIN_SYMBOLS).get(tone, "-")

    def write(self, what: RenderableType, indent: int = 0, hang: int = 0) -> None:
        """Prints text wrapped below an indent (`hang` more from its second line on) without trailing blanks."""
        if not isinstance(what, Text):
            self.console.print(what, highlight=False)
            return
        what.plain = self._encodable(what.plain)
        pad = " " * indent
        for number, line in enumerate(what.wrap(self.console, self.console.width - indent - hang)):
            line.rstrip()
            text = Text(pad + (" " * hang if number else "")).append_text(line)
            self.console.print(text, highlight=False, no_wrap=True, overflow="ignore", crop=False)

    def gap(self) -> None:
        """An empty line."""
        self.console.print()

    def heading(self, text: str, note: str = "") -> None:
        """A heading with an empty line before it."""
        self.gap()
        line = Text(text, style="bold")
        if note:
            line.append(f"  {note}", style="dim not bold")
        self.write(line)

    def table(self, *columns: str, right: Iterable[int] = ()) -> Table:
        """An empty table; `right`: columns that are set flush right."""
        from rich import box
        from rich.table import Table

        lines = box.SIMPLE_HEAD if self.unicode else box.ASCII_DOUBLE_HEAD
        table = Table(box=lines, pad_edge=False, show_edge=False, header_style="dim")
        for index, column in enumerate(columns):
            table.add_column(column, justify="right" if index in set(right) else "left", overflow="fold")
        return table

    def cell(self, text: str, style: str = "") -> Text:
        """One cell of a table."""
        return Text(self._encodable(one_line(text)), style=style)

    def _encodable(self, text: str) -> str:
        # Same length, so that styles stay where they are.
        return (
            text
            if self.unicode
            else text.encode(self.console.encoding, "replace").decode(self.console.encoding)
        )


def worded(text: str, style: str = "") -> Text:
    """Text with `code` between backquotes set apart; without colour the backquotes stay readable as they are."""
    out = Text(visible(text), style=style)
    out.highlight_regex(r"`[^`\n]+`", "cyan")
    return out


def remedy(text: str) -> Text:
    """What to write instead."""
    hint = Text("Write instead: ", style="green")
    hint.append_text(worded(text))
    return hint


def quoted(quote: Quote, writer: TerminalWriter) -> Iterable[Text]:
    """Lines of the submission with their numbers, those to blame marked."""
    yield Text(one_line(quote.place), style="underline")
    marker = "▸" if writer.unicode else ">"
    for quoted in quote.lines:
        line = Text(
            f"{quoted.number:>4} {marker if quoted.hit else ' '} ", style="red" if quoted.hit else "dim"
        )
        line.append(visible(quoted.text), style="default not dim")
        yield line
        # Hidden characters or a wrapped line would put the caret under something else.
        fits = (
            visible(quoted.text) == quoted.text and len(quoted.text) + _QUOTE_INDENT <= writer.console.width
        )
        if quoted.caret is not None and fits:
            yield Text(" " * (7 + quoted.caret) + "^", style="red")
    if quote.num_left_out:
        yield Text(f"      … and {wording.plural(quote.num_left_out, 'more line')}", style="dim")
