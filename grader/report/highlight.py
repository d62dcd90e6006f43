"""Python source as HTML, line by line, with quiet colours; text that does not parse is shown plain, never refused."""

from __future__ import annotations

import io
import keyword
import tokenize
from collections.abc import Iterable, Iterator

from markupsafe import Markup, escape

from grader.report.safe_text import visible

_CLASSES = {tokenize.COMMENT: "c", tokenize.STRING: "s", tokenize.NUMBER: "num-lit"}
_MAX_LINES = 5000


def highlighted(lines: Iterable[str]) -> list[Markup]:
    """Each line as escaped HTML with `<span class=…>`: `c` comment, `s` string, `num-lit` number, `k` keyword."""
    source = list(lines)
    spans: dict[int, list[tuple[int, int, str]]] = {}
    if len(source) <= _MAX_LINES:
        for row, begin, end, name in _spans(source):
            spans.setdefault(row, []).append((begin, end, name))
    return [_line(text, spans.get(row, [])) for row, text in enumerate(source, start=1)]


def _spans(source: list[str]) -> Iterator[tuple[int, int, int, str]]:
    try:
        for token in tokenize.generate_tokens(io.StringIO("\n".join(source) + "\n").readline):
            name = _class(token)
            if not name:
                continue
            (first, begin), (last, end) = token.start, token.end
            for row in range(first, last + 1):
                yield row, begin if row == first else 0, end if row == last else len(source[row - 1]), name
    except (SyntaxError, tokenize.TokenError, ValueError, IndexError):
        return  # what was read so far keeps its colours


def _class(token: tokenize.TokenInfo) -> str:
    if token.type == tokenize.NAME:
        return "k" if keyword.iskeyword(token.string) else ""
    if tokenize.tok_name[token.type].startswith("FSTRING"):
        return "s"
    return _CLASSES.get(token.type, "")


def _line(text: str, spans: list[tuple[int, int, str]]) -> Markup:
    out, position = [], 0
    for begin, end, name in spans:
        if begin < position:
            continue
        out.append(escape(visible(text[position:begin])))
        out.append(Markup('<span class="{}">{}</span>').format(name, visible(text[begin:end])))
        position = end
    out.append(escape(visible(text[position:])))
    return Markup("").join(out)
