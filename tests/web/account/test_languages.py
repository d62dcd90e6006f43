"""Pages in the language of their reader, and catalogs that leave no text out."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from babel.messages.catalog import Catalog, Message
from babel.messages.extract import DEFAULT_KEYWORDS, extract_from_dir
from babel.messages.pofile import read_po

import grader
from grader import translation
from tests.web.conftest import School

ROOT = Path(grader.__file__).parent
PLACEHOLDER = re.compile(r"%\(\w+\)[a-z]|{\w*}|<[^>]*>")
TRANSLATED = [code for code in translation.languages() if code != translation.ENGLISH]


def texts() -> Iterator[str | tuple[str, ...]]:
    told = tomllib.loads((ROOT.parent / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["babel"][
        "mappings"
    ]
    methods = [(one["pattern"], one["method"]) for one in told]
    options = {
        one["pattern"]: {k: v for k, v in one.items() if k not in ("pattern", "method")} for one in told
    }
    for room in ("report", "web", "delivery"):
        if (ROOT / room).is_dir():
            for _, _, message, _, _ in extract_from_dir(
                ROOT / room, methods, options, {**DEFAULT_KEYWORDS, "_": None, "counted": (1, 2)}
            ):
                yield message


def catalog(code: str) -> Catalog:
    with (ROOT / "translation" / f"{code}.po").open("rb") as file:
        return read_po(file, locale=code, abort_invalid=True)


@pytest.mark.parametrize("code", TRANSLATED)
def test_every_text_is_translated(code: str) -> None:
    there = catalog(code)
    found = set(texts())
    assert found, "the catalogs' tool finds no text at all"
    missing = []
    for text in found:
        known: Message | None = there.get(text if isinstance(text, str) else text[0])
        if known is None or known.fuzzy or not known.string or not all(known.string):
            missing.append(text)
    assert not missing, f"run `make texts`, and write the translations of: {missing}"


@pytest.mark.parametrize("code", TRANSLATED)
def test_translations_name_what_the_text_names(code: str) -> None:
    for message in catalog(code):
        if message.id:
            # Of a plural the singular may say "one" for the number.
            told = message.id if isinstance(message.id, str) else message.id[1]
            said = message.string if isinstance(message.string, str) else (message.string or [""])[-1]
            assert sorted(PLACEHOLDER.findall(told)) == sorted(PLACEHOLDER.findall(said)), message.id


def test_a_page_is_in_the_language_of_its_reader(school: School) -> None:
    anna = school.client("anna")
    german = {"Accept-Language": "fr;q=0.9, de-AT, en;q=0.8"}
    assert '<html lang="en">' in anna.get("/").text
    page = anna.get("/", headers=german)
    assert '<html lang="de">' in page.text
    assert "Abmelden" in page.text
    assert '<html lang="en">' in anna.get("/", headers={"Accept-Language": "fr"}).text, "there is no French"


def test_a_language_that_was_chosen_is_kept(school: School) -> None:
    anna = school.client("anna")
    assert 'href="?language=de"' in anna.get("/account").text
    assert '<html lang="de">' in anna.get("/account?language=de").text
    assert '<html lang="de">' in anna.get("/", headers={"Accept-Language": "en"}).text
    assert '<html lang="en">' in anna.get("/?language=en").text
    assert '<html lang="en">' in anna.get("/", headers={"Accept-Language": "de"}).text
    assert "set-cookie" not in anna.get("/?language=../x%0d%0a").headers
    assert '<html lang="en">' in anna.get("/").text


def test_catalogs_are_brought_up_to_date_by_one_command(tmp_path: Path) -> None:
    repository = ROOT.parent
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(repository / name, tmp_path)
    for room in ("report", "web", "delivery", "translation"):
        shutil.copytree(ROOT / room, tmp_path / "grader" / room)
    page = tmp_path / "grader" / "web" / "templates" / "home.html.j2"
    page.write_text(page.read_text(encoding="utf-8") + '{{ _("a text that nobody has translated") }}\n')
    # Whatever this runs with, its programs are there: what they need is installed.
    venv = Path(sys.executable).parent.parent
    made = venv / ".installed-dev"
    subprocess.run(["make", "-o", made, "texts", f"VENV={venv}"], cwd=tmp_path, check=True, timeout=120)
    for code in TRANSLATED:
        with (tmp_path / "grader" / "translation" / f"{code}.po").open("rb") as file:
            updated = {message.id: message.string for message in read_po(file, locale=code) if message.id}
        assert updated.pop("a text that nobody has translated") == ""
        assert updated == {message.id: message.string for message in catalog(code) if message.id}
