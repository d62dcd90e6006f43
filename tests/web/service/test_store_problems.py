"""What the store refuses is told in the reader's language: the texts are the store's own."""

from __future__ import annotations

from pathlib import Path

import pytest

import grader
from grader.errors import UsageError
from grader.translation import in_language
from grader.web.staff.store_problems import FILLED, TEXTS, problem_text


@pytest.mark.parametrize("text", TEXTS)
def test_the_store_says_it_so(text: str) -> None:
    sources = (Path(grader.__file__).parent / "store").rglob("*.py")
    assert any(f'"{text}"' in path.read_text(encoding="utf-8") for path in sources)


@pytest.mark.parametrize("text", FILLED)
def test_what_is_put_in_stays(text: str) -> None:
    told = text.format(most="{4}", name="Ärzte (2)")
    assert problem_text(UsageError(told)) == told
    with in_language("de"):
        german = problem_text(UsageError(told))
    assert german != told
    assert "{4}" in german or "Ärzte (2)" in german


def test_what_has_no_translation_stays_as_it_is() -> None:
    with in_language("de"):
        assert problem_text(UsageError("nobody translates this")) == "nobody translates this"
