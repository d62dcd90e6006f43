"""The template engine of everything that browsers show, reports and pages: strict, escaping, with the words of both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from grader.report.html.markdown_html import inline_html
from grader.report.safe_text import one_line, visible
from grader.report.words import wording


def page_engine(templates: Path) -> Environment:
    """An engine whose only folder is `templates`; what it may be given beyond these words, its caller adds."""
    engine = Environment(
        loader=FileSystemLoader(templates),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=shown,
    )
    engine.filters |= {
        "inline": inline_html,
        "one_line": one_line,
        "points": wording.points_text,
        "seconds": wording.seconds_text,
        "bytes": wording.bytes_text,
        "number": wording.number_text,
    }
    engine.globals |= {
        "EVIDENCES": wording.EVIDENCES,
        "SEVERITY_TONES": wording.SEVERITY_TONES,
        "SYMBOLS": wording.SYMBOLS,
        "VERDICTS": wording.VERDICTS,
        "findings_text": wording.findings_text,
        "plural": wording.plural,
    }
    return engine


def shown(value: Any) -> Any:
    """Every text that reaches the page is made visible, wherever a template prints it."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value
