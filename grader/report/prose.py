"""A small, safe part of Markdown as HTML: what rule pages and messages are written in.

Headings, paragraphs, lists, fenced and indented code, `code`, **bold**, *emphasis* and links to web pages. Raw HTML is
text; links to anything but http(s) are text. Never used for what a learner's script printed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from markupsafe import Markup, escape

from grader.report.safe_text import visible

_INLINE = re.compile(
    r"``(?P<double>.+?)``|`(?P<code>[^`\n]+)`|\*\*(?P<bold>[^*\n]+)\*\*"
    r"|(?<![\w*])\*(?P<em>[^*\s][^*\n]*)\*(?![\w*])|\[(?P<text>[^\]\n]+)\]\((?P<url>https?://[^\s()<>\"']+)\)"
)
_HEADING = re.compile(r"(#{1,6})\s+(?P<text>.*?)\s*#*$|\*{1,2}(?P<starred>[^*]+?)[.:]?\*{1,2}[.:]?$")
_UNDERLINE = re.compile(r"(=+|-{3,}|~{3,})$")
_ITEM = re.compile(r"(?:[-*+]|\d+[.)])\s+(.*)")
_FENCE = re.compile(r"(`{3,}|~{3,})")


def inline(text: str) -> Markup:
    """One message or paragraph: code between backquotes, bold, emphasis, links; everything else escaped."""
    text = visible(text)
    out, position = [], 0
    for match in _INLINE.finditer(text):
        out += [escape(text[position : match.start()]), _span(match)]
        position = match.end()
    out.append(escape(text[position:]))
    return Markup("").join(out)


def page(text: str) -> Markup:
    """A whole page; its headings start at `<h4>`, as they stand below a finding's own heading."""
    return Markup("\n").join(_blocks(text.strip().expandtabs(4).splitlines()))


def _span(match: re.Match[str]) -> Markup:
    code = match["double"] or match["code"]
    if code:
        return Markup("<code>{}</code>").format(code)
    if match["bold"]:
        return Markup("<strong>{}</strong>").format(match["bold"])
    if match["em"]:
        return Markup("<em>{}</em>").format(match["em"])
    return Markup('<a href="{}" rel="noreferrer noopener">{}</a>').format(match["url"], match["text"])


def _blocks(lines: list[str]) -> Iterator[Markup]:
    position = 0
    while position < len(lines):
        line = lines[position]
        fence = _FENCE.match(line.strip())
        if not line.strip():
            position += 1
        elif fence:
            end = next(
                (i for i in range(position + 1, len(lines)) if lines[i].strip().startswith(fence[1])),
                len(lines),
            )
            yield _code(lines[position + 1 : end])
            position = end + 1
        elif line.startswith("    "):
            end = position
            while end < len(lines) and (lines[end].startswith("    ") or not lines[end].strip()):
                end += 1
            yield _code(lines[position:end])
            position = end
        elif _is_heading(lines, position):
            match = _HEADING.match(line.strip())
            yield Markup("<h4>{}</h4>").format(
                inline((match["text"] or match["starred"]) if match else line.strip())
            )
            position += 1 if match else 2
        else:
            end = _end_of_paragraph(lines, position)
            yield _list(lines[position:end]) if _ITEM.match(line.strip()) else _paragraph(lines[position:end])
            position = end


def _is_heading(lines: list[str], position: int) -> bool:
    if _HEADING.match(lines[position].strip()):
        return True
    return position + 1 < len(lines) and bool(_UNDERLINE.match(lines[position + 1].strip()))


def _end_of_paragraph(lines: list[str], position: int) -> int:
    end = position + 1
    in_list = bool(_ITEM.match(lines[position].strip()))
    while end < len(lines) and lines[end].strip():
        starts_item = bool(_ITEM.match(lines[end].strip()))
        if _FENCE.match(lines[end].strip()) or (starts_item and not in_list) or _is_heading(lines, end):
            break
        end += 1
    return end


def _paragraph(lines: list[str]) -> Markup:
    return Markup("<p>{}</p>").format(inline(" ".join(line.strip() for line in lines)))


def _list(lines: list[str]) -> Markup:
    items: list[str] = []
    for line in lines:
        match = _ITEM.match(line.strip())
        if match:
            items.append(match[1])
        else:
            items[-1] += " " + line.strip()
    return Markup("<ul>{}</ul>").format(
        Markup("").join(Markup("<li>{}</li>").format(inline(i)) for i in items)
    )


def _code(lines: list[str]) -> Markup:
    indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    text = visible("\n".join(line[indent:] for line in lines).strip("\n"))
    return Markup('<pre tabindex="0"><code>{}</code></pre>').format(text)
