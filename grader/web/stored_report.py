"""A stored report as a part of a page: its styles and its body, taken out of the one file that the worker wrote.

The report was escaped when it was written; here it is cut at marks that only our own template sets, never parsed.
"""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup, escape

from grader.report.safe_text import one_line

REPORT, STAFF_REPORT = "report.html", "report-staff.html"
_STYLE = ("<style>", "</style>")
_BODY = ('<div class="page">', "</body>")


@dataclass(frozen=True, slots=True)
class StoredReport:
    """Styles and body of a report."""

    style: Markup
    body: Markup


def read(data: bytes, *, old: str = "", new: str = "") -> StoredReport | None:
    """Styles and body; None where this is no report of ours.

    Args:
        data: the whole file.
        old, new: what the submission was called when this was written, and what this learner called it.
    """
    text = renamed(data, old, new).decode("utf-8", "replace")
    style = _between(text, *_STYLE)
    # The marks stand before anything that a learner wrote: the first of each is ours.
    start, end = text.find(_BODY[0]), text.rfind(_BODY[1])
    if style is None or not 0 <= start < end:
        return None
    body = text[start + len(_BODY[0]) : end].rstrip().removesuffix("</div>")
    return StoredReport(Markup(style), Markup(body))


def renamed(data: bytes, old: str, new: str) -> bytes:
    """The file with the submission called by its own name: the same files may be somebody else's, too."""
    if not old or old == new:
        return data
    before, after = (str(escape(one_line(name))).encode() for name in (old, new))
    for mark in (b'<p class="mono">%s</p>', b": %s \xc2\xb7 ", b"<dt>submission</dt><dd>%s, "):
        data = data.replace(mark % before, mark % after, 1)
    return data


def _between(text: str, first: str, last: str) -> str | None:
    start = text.find(first)
    end = text.find(last, start)
    return text[start + len(first) : end] if 0 <= start < end else None
