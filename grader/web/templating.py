"""How pages look: the template engine with the words, units and times that every page says alike.

Whatever a template prints is escaped and made visible, so that no name, log or script acts on a page. Decides nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from jinja2 import Environment
from markupsafe import Markup, escape

from grader.model.attempt_result import AttemptResult
from grader.model.grade import RubricResult
from grader.model.notebook_lines import told_place
from grader.model.start_command import start_command
from grader.report.html.markdown_html import inline_html, page_html, statement_html
from grader.report.html.page_engine import page_engine
from grader.report.safe_text import one_line, visible
from grader.report.words import banner, wording
from grader.store.attempts.attempts import StoredAttempt
from grader.store.grading.comment_library import StoredEntry
from grader.translation import (
    counted,
    date_text,
    gettext,
    languages,
    moment_text,
)
from grader.translation.templates import translate_templates
from grader.web.languages import LANGUAGES, here_in
from grader.web.page_zone import page_zone
from grader.web.role_names import role_name, role_plural
from grader.web.staff.course_tabs import course_tabs
from grader.web.staff.stored_words import stored_word, verdict_options

_HERE = Path(__file__).parent
_REPORT = _HERE.parent / "report" / "templates"
# The report's colours and elements are those of the pages: one file each, read by both.
_SITE_CSS = (_REPORT / "tokens.css", _REPORT / "elements.css", _HERE / "static" / "site.css")
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_MEDIA = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


@cache
def environment() -> Environment:
    """The template engine with our filters and words; `grader/web/templates` is its only folder."""
    made = page_engine(_HERE / "templates")
    translate_templates(made)
    made.filters |= {
        "markdown": statement_html,
        "announcement_text": _announcement,
        "visible": visible,
        "inline": _inline,
        "one_line": _one_line,
        "iso": _machine,
        "when": when,
        "day": day,
        "date_text": date_text,
    }
    made.globals |= {
        "static": static_path,
        "told_place": told_place,
        "HEADLINES": wording.HEADLINES,
        "TONES": wording.TONES,
        "relative": relative,
        "ordinal": wording.ordinal,
        "attempt_name": attempt_name,
        "here_in": here_in,
        "page_zone": page_zone,
        "role_name": role_name,
        "role_plural": role_plural,
        "page_languages": {code: LANGUAGES[code] for code in languages()},
        "headline": _headline,
        "outcome_of": banner.outcome,
        "tone_of": banner.tone,
        "start_command": start_command,
        "signed_points": banner.signed,
        "tabs_of_course": course_tabs,
        "library_options": library_options,
        "rubric_options": rubric_options,
        "verdict_options": verdict_options,
        "stored_word": stored_word,
    }
    return made


def _inline(text: str) -> Markup:
    """`inline_html`, of our own texts with something put into them, too."""
    return inline_html(_unescaped(text))


def _one_line(text: str) -> str:
    """`one_line`, of our own texts with something put into them, too."""
    return one_line(_unescaped(text))


def _unescaped(text: str) -> str:
    # Both are escaped once more when they are printed.
    return text.unescape() if isinstance(text, Markup) else text


def _announcement(text: str, top: int) -> Markup:
    return page_html(text, top=top)


def _headline(result: AttemptResult) -> Markup:
    """The first words of the sentence about an attempt, with moments as the browser shows them."""
    # Nothing in it comes from outside: words of ours, and a moment.
    return Markup(banner.headline(result, when=lambda at: str(when(at, ago=False))))


def library_options(library: Iterable[StoredEntry]) -> list[tuple[int, str]]:
    """Entries of a library, to choose from: title, and what each changes."""
    return [
        (one.id, f"{one.comment.title} ({banner.signed(points.points)})" if points else one.comment.title)
        for one in library
        for points in [one.comment.points]
    ]


def rubric_options(rubric: Iterable[RubricResult]) -> list[tuple[str, str]]:
    """Items of a rubric, to choose from: what each is, and how much of it was earned."""
    return [
        (
            one.id,
            gettext("{title}: {earned} of {points}").format(
                title=one.title,
                earned=wording.points_text(one.earned),
                points=wording.points_text(one.points),
            ),
        )
        for one in rubric
        if one.points
    ]


def attempt_name(attempt: StoredAttempt, *, own: bool) -> str:
    """What an attempt is called: one's own are counted, those of others have the number of their address."""
    if own:
        return gettext("Your {ordinal} attempt").format(ordinal=wording.ordinal(attempt.number))
    return gettext("Attempt {number}").format(number=attempt.id)


@cache
def assets() -> Mapping[str, tuple[bytes, str]]:
    """Everything below `/static/`: name → (bytes, media type)."""
    found = {"site.css": (b"\n".join(path.read_bytes() for path in _SITE_CSS), _MEDIA[".css"])}
    for path in sorted((_HERE / "static").iterdir()):
        if path.suffix in _MEDIA and path.name not in found:
            found[path.name] = (path.read_bytes(), _MEDIA[path.suffix])
    return found


@cache
def static_path(name: str) -> str:
    """Address of one of `assets`, which changes with its bytes, so that browsers may keep it for good."""
    return f"/static/{hashlib.sha256(assets()[name][0]).hexdigest()[:12]}/{name}"


def when(at: datetime | None, *, ago: bool = True) -> Markup:
    """A moment: absolute, and how long ago or ahead; a dash for none."""
    if at is None:
        return Markup('<span class="muted">–</span>')
    of = page_zone()
    text = moment_text(at.astimezone(of or UTC))
    # Put together and not formatted, which takes longer than all else here: a table has hundreds of moments.
    told = f'<time datetime="{_machine(at)}">{escape(text)}{"" if of else " UTC"}</time>'
    return Markup(f'{told} <span class="ago">({escape(relative(at))})</span>' if ago else told)


def day(at: datetime | None) -> Markup:
    """A day, for paper."""
    if at is None:
        return Markup("–")
    return Markup('<time datetime="{}" data-day>{}</time>').format(
        _machine(at), date_text(at.astimezone(page_zone() or UTC))
    )


def relative(at: datetime, now: datetime | None = None) -> str:
    """`3 minutes ago`, `in 2 days`, `just now`."""
    gap = (at - (now or datetime.now(UTC))).total_seconds()
    size = abs(gap)
    if size < _MINUTE:
        return gettext("just now") if gap <= 0 else gettext("in less than a minute")
    ahead = gap > 0
    # Up to two of a unit the smaller one says more: "36 hours" rather than "1 day".
    if size >= 2 * _DAY:
        days = int(size // _DAY)
        return (
            counted("in %(num)s day", "in %(num)s days", days)
            if ahead
            else counted("%(num)s day ago", "%(num)s days ago", days)
        )
    if size >= 2 * _HOUR:
        hours = int(size // _HOUR)
        return (
            counted("in %(num)s hour", "in %(num)s hours", hours)
            if ahead
            else counted("%(num)s hour ago", "%(num)s hours ago", hours)
        )
    minutes = int(size // _MINUTE)
    if size >= _HOUR:
        rest = minutes - 60
        if not rest:
            return gettext("in 1 hour") if ahead else gettext("1 hour ago")
        return (
            counted("in 1 hour %(num)s minute", "in 1 hour %(num)s minutes", rest)
            if ahead
            else counted("1 hour %(num)s minute ago", "1 hour %(num)s minutes ago", rest)
        )
    return (
        counted("in %(num)s minute", "in %(num)s minutes", minutes)
        if ahead
        else counted("%(num)s minute ago", "%(num)s minutes ago", minutes)
    )


def _machine(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
