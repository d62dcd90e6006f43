"""Python source as HTML, line by line, with quiet colours; text that does not parse is shown, too, never refused."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import groupby
from operator import itemgetter

from markupsafe import Markup, escape
from pygments.lexer import Lexer
from pygments.lexers.python import PythonLexer
from pygments.token import Comment, Keyword, Number, Operator, String, _TokenType

from grader.report.safe_text import cut, visible

_CLASSES = ((Comment, "c"), (String, "s"), (Number, "num-lit"), (Keyword, "k"), (Operator.Word, "k"))
_MAX_LINES, _MAX_CHARACTERS = 5000, 200_000
_LONGEST_LINE = 2000


def highlighted(lines: Iterable[str]) -> list[Markup]:
    """Each line as escaped HTML with `<span class=…>`: `c` comment, `s` string, `num-lit` number, `k` keyword.

    Of a line longer than 2,000 characters only the first are shown.
    """
    source = [cut(line, _LONGEST_LINE) for line in lines]
    text = "\n".join(source)
    if len(source) > _MAX_LINES or len(text) > _MAX_CHARACTERS:
        return [escape(visible(line)) for line in source]
    done: list[list[tuple[str, str]]] = [[]]
    for _, kind, value in _lexer().get_tokens_unprocessed(text):
        for number, part in enumerate(value.split("\n")):
            if number:
                done.append([])
            done[-1].append((_class(kind), part))
    return [_line(pieces) for pieces in done[: len(source)]]


def _line(pieces: list[tuple[str, str]]) -> Markup:
    out = Markup()
    for name, group in groupby(pieces, key=itemgetter(0)):
        text = escape(visible("".join(part for _, part in group)))
        out += Markup('<span class="{}">{}</span>').format(name, text) if name and text else text
    return out


@cache
def _class(kind: _TokenType) -> str:
    return next((name for group, name in _CLASSES if kind in group), "")


@cache
def _lexer() -> Lexer:
    return PythonLexer()
