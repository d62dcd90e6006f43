"""A stored report as a part of a page: its styles and its body, taken out of the one file that the worker wrote.

The report was escaped when it was written; here it is cut at marks that only our own template sets, never parsed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from markupsafe import Markup, escape

from grader.model.finding import Severity
from grader.report.safe_text import one_line
from grader.report.words.wording import SEVERITIES

REPORT, STAFF_REPORT = "report.html", "report-staff.html"
_VERDICT = (b'<div class="panel hero', b'<dl class="strip">')
_SUM = (b'<tr><th scope="row">Together</th>', b"</tr>")
_TITLE = re.compile(rb"<title>[^<]*</title>")
_FIX_LINK = re.compile(rb'(<a href="#fix">)[^<]*(</a>)')
_FIX_HEAD = re.compile(rb'(<h2 id="fix-title">)[^<]*(</h2>\s*<p class="lede">)[^<]*(</p>)')
_LEADS = tuple(SEVERITIES[one][1] for one in (Severity.ERROR, Severity.WARNING))
_LEAD = re.compile(rb"(</h3><p>[^<]*?)(?:%s)(</p>)" % b"|".join(re.escape(one.encode()) for one in _LEADS))
"""What the findings' groups say of acceptance."""
_FOUND = b"What the grader found"
_DECIDED = b"An instructor decided otherwise: what counts, and why, stands on top."
_STYLE = ("<style>", "</style>")
_BODY = ('<div class="page">', "</body>")


@dataclass(frozen=True, slots=True)
class StoredReport:
    """Styles of a report, the panel on its top that says how the attempt ended, and all the rest of its body."""

    style: Markup
    verdict: Markup
    body: Markup


@dataclass(frozen=True, slots=True)
class InForce:
    """What an attempt counts as, where that is not what was judged, as its report tells it.

    Attributes:
        title: of the file; panel: on its top; rows: of the table of points, below their sum.
        otherwise: an instructor accepted what was not, or the other way round.
    """

    title: str
    panel: Markup
    rows: Markup
    otherwise: bool


def read(data: bytes) -> StoredReport | None:
    """Styles, panel and body of the whole file; None where this is no report of ours."""
    text = data.decode("utf-8", "replace")
    style = _between(text, *_STYLE)
    # The marks stand before anything that a learner wrote: the first of each is ours.
    start, end = text.find(_BODY[0]), text.rfind(_BODY[1])
    if style is None or not 0 <= start < end:
        return None
    body = text[start + len(_BODY[0]) : end].rstrip().removesuffix("</div>")
    first, last = (body.find(mark.decode()) for mark in _VERDICT)
    if not 0 <= first < last:
        return StoredReport(Markup(style), Markup(), _in_english(body))
    return StoredReport(Markup(style), _in_english(body[first:last]), _in_english(body[:first] + body[last:]))


def with_result(data: bytes, result: InForce) -> bytes:
    """The file with what counts on its top, in its title and below its points; as it is where it has no such places."""
    # What a learner wrote is escaped everywhere: the marks are ours.
    start = data.find(_VERDICT[0])
    end = data.find(_VERDICT[1], start)
    if not 0 <= start < end:
        return data
    data = data[:start] + result.panel.encode() + b"\n" + data[end:]
    title = str(escape(one_line(result.title))).encode()
    data = _TITLE.sub(lambda _: b"<title>" + title + b"</title>", data, count=1)
    sum_at = data.find(_SUM[0])
    below = data.find(_SUM[1], sum_at) + len(_SUM[1])
    if 0 <= sum_at < below:
        data = data[:below] + result.rows.encode() + data[below:]
    if not result.otherwise:
        return data
    data = _LEAD.sub(rb"\1\2", data)
    data = _FIX_LINK.sub(rb"\1" + _FOUND + rb"\2", data, count=1)
    return _FIX_HEAD.sub(rb"\1" + _FOUND + rb"\2" + _DECIDED + rb"\3", data, count=1)


def renamed(data: bytes, old: str, new: str) -> bytes:
    """The file with the submission called by its own name: the same files may be somebody else's, too."""
    if not old or old == new:
        return data
    before, after = (str(escape(one_line(name))).encode() for name in (old, new))
    for mark in (b'<p class="mono">%s</p>', b": %s \xc2\xb7 ", b"<dt>submission</dt><dd>%s, "):
        data = data.replace(mark % before, mark % after, 1)
    return data


def _in_english(html: str) -> Markup:
    """Its first element says that it is in English, as all that is in it: the page around it may not be."""
    return Markup(re.sub(r"<(\w+) ", r'<\1 lang="en" ', html, count=1))


def _between(text: str, first: str, last: str) -> str | None:
    start = text.find(first)
    end = text.find(last, start)
    return text[start + len(first) : end] if 0 <= start < end else None
