"""Texts of pages and mails in the language of whoever reads them, through gettext; English is what stands in the code.

The language is the present request's, or the one of a block (`in_language`). Catalogs are `LANGUAGE.po` beside this;
`make texts` brings them up to date. English needs nothing that is not Python's own. Knows no page.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from functools import cache
from gettext import GNUTranslations, NullTranslations
from pathlib import Path
from typing import TypeVar

ENGLISH = "en"
_FOLDER = Path(__file__).parent
_current: ContextVar[str] = ContextVar("language", default=ENGLISH)
_Key = TypeVar("_Key")


@cache
def languages() -> tuple[str, ...]:
    """Codes of the languages that there are catalogs for, English first."""
    return (ENGLISH, *sorted(path.stem for path in _FOLDER.glob("*.po")))


def chosen(wanted: Iterable[str]) -> str:
    """The first of these codes that there is a catalog for; English where there is none."""
    return next((code for code in wanted if code in languages()), ENGLISH)


def current_language() -> str:
    """The code of the language that texts are in now."""
    return _current.get()


@contextmanager
def in_language(code: str) -> Iterator[None]:
    """Meanwhile texts are in that language."""
    before = _current.set(chosen([code]))
    try:
        yield
    finally:
        _current.reset(before)


def gettext(text: str) -> str:
    """The text in the present language, or as it is where the catalog has none."""
    # Catalogs have their own head below "".
    return _catalog(_current.get()).gettext(text) if text else text


def ngettext(one: str, many: str, number: int) -> str:
    """The same, in the form that goes with the number."""
    return _catalog(_current.get()).ngettext(one, many, number)


def counted(one: str, many: str, number: int) -> str:
    """The same, with the number where the text says `%(num)s`."""
    return ngettext(one, many, number) % {"num": number_text(number)}


def number_text(number: int) -> str:
    """`1,437`, as the language groups digits."""
    return with_own_signs(f"{number:,}")


def with_own_signs(number: str) -> str:
    """A number as it is written in English, such as `1,437.5`, with the signs of the present language."""
    if _current.get() == ENGLISH:
        return number
    from babel.numbers import get_decimal_symbol, get_group_symbol

    group, point = get_group_symbol(_current.get()), get_decimal_symbol(_current.get())
    return number.translate({ord(","): group, ord("."): point})


class TranslatedTexts(Mapping[_Key, str]):
    """Texts by key, marked with `N_`; each is read in the present language."""

    def __init__(self, texts: Mapping[_Key, str]) -> None:
        self._texts = texts

    def __getitem__(self, key: _Key) -> str:
        return gettext(self._texts[key])

    def __iter__(self) -> Iterator[_Key]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)


def N_(text: str) -> str:  # noqa: N802 (the name that tools for catalogs know)
    """Marks a text for the catalogs that is written down before anybody reads it; `gettext` is for then."""
    return text


def moment_text(at: datetime) -> str:
    """`3 Mar 2027, 14:05`, in the zone that `at` has, which is not told."""
    if _current.get() == ENGLISH:
        return f"{at:%-d %b %Y, %H:%M}"
    from babel.dates import format_date, format_time

    return f"{format_date(at, locale=_current.get())}, {format_time(at, 'short', locale=_current.get())}"


def date_text(at: datetime) -> str:
    """`3 March 2027`."""
    if _current.get() == ENGLISH:
        return f"{at:%-d %B %Y}"
    from babel.dates import format_date

    return format_date(at, "long", locale=_current.get())


@cache
def _catalog(code: str) -> NullTranslations:
    if code == ENGLISH:
        return NullTranslations()
    from babel.messages.mofile import write_mo
    from babel.messages.pofile import read_po

    compiled = io.BytesIO()
    with (_FOLDER / f"{code}.po").open("rb") as file:
        write_mo(compiled, read_po(file, locale=code))
    compiled.seek(0)
    return GNUTranslations(compiled)
