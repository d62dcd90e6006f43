"""Nothing that a script prints can act on the reader's screen, and nothing of it disappears."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.report.safe_text import one_line, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text, naïve, 数据 ✔", "plain text, naïve, 数据 ✔"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("windows\r\nline", "windows\nline"),
        ("\x1b[31mred\x1b[0m", "␛[31mred␛[0m"),
        ("progress 10 %\rprogress 20 %", "progress 10 %␍progress 20 %"),
        ("nul \x00, bell \x07, delete \x7f", "nul ␀, bell ␇, delete ␡"),
        ("\x9b31m", "‹U+009B›31m"),
        ("evil \u202egnp.exe", "evil ‹U+202E›gnp.exe"),
        ("zero\u200bwidth", "zero‹U+200B›width"),
        ("lone \ud800 half", "lone ‹U+D800› half"),
        ("tag \U000e0041", "tag ‹U+E0041›"),
    ],
)
def test_invisible_characters_get_a_mark(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_a_name_stays_on_one_line() -> None:
    assert one_line("a\nb\tc") == "a␤b␉c"


def test_no_character_of_unicode_steers_anything() -> None:
    shown = visible("".join(map(chr, range(sys.maxunicode + 1))))
    shown.encode("utf-8")
    left = {c for c in set(shown) if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")}
    assert left == {"\n", "\t"}


@given(st.text(st.characters(codec=None)))
def test_marking_twice_changes_nothing(text: str) -> None:
    assert visible(visible(text)) == visible(text)
