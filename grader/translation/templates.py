"""Jinja2 templates whose texts are translated when they are rendered, for pages and for plain text alike."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from jinja2 import Environment, pass_environment
from markupsafe import Markup

from grader.translation import current_language, gettext, ngettext, number_text


def translate_templates(engine: Environment) -> None:
    """Give an engine `{% trans %}`, `_()`, `ngettext()` and `current_language()`.

    What is put into a text goes the way of everything that the engine prints; where it escapes, texts are HTML.
    """
    engine.add_extension("jinja2.ext.i18n")
    engine.policies["ext.i18n.trimmed"] = True
    engine.newstyle_gettext = True  # type: ignore[attr-defined] # as the extension reads it
    engine.globals |= {
        "_": _text,
        "gettext": _text,
        "ngettext": _counted_text,
        "current_language": current_language,
    }


@pass_environment
def _text(engine: Environment, text: str, **values: Any) -> str:
    if values:
        return _filled(engine, gettext(text), values)
    return _plain(text, bool(engine.autoescape), current_language())


@lru_cache(maxsize=4096)
def _plain(text: str, is_html: bool, _language: str) -> str:
    """A text into which nothing is put, in the present language: tables say the same ones in every row."""
    return (Markup(gettext(text)) if is_html else gettext(text)) % {}


@pass_environment
def _counted_text(engine: Environment, one: str, many: str, num: int, **values: Any) -> str:
    return _filled(engine, ngettext(one, many, num), {"num": number_text(num), **values})


def _filled(engine: Environment, text: str, values: Mapping[str, Any]) -> str:
    printed = engine.finalize or (lambda value: value)
    return (Markup(text) if engine.autoescape else text) % {
        name: printed(value) for name, value in values.items()
    }
