"""The report in a real browser: phone and desk, light and dark, and hostile text that must stay text."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from grader.report.html.attempt_page import to_html
from tests.browser import page_checks
from tests.report import factory

pytestmark = pytest.mark.browser

_ATTEMPTS = ("accepted", "rejected", "deadlocked", "crashed", "does_not_parse", "hostile")
_SIZES = {"phone": (390, 844), "desk": (1280, 900)}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("no Chromium on this machine")
    arguments = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=arguments)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("reports")
    written = {}
    for name in _ATTEMPTS:
        written[name] = folder / f"{name}.html"
        written[name].write_text(to_html(getattr(factory, name)(), factory.PAGES), encoding="utf-8")
    return written


def opened(browser: Any, file: Path, size: str, scheme: str = "light") -> tuple[Any, list[str]]:
    """The page with everything unfolded, and what it complained about or asked the network for."""
    width, height = _SIZES[size]
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
    trouble: list[str] = []
    page.on("console", lambda message: trouble.append(message.text))
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("dialog", lambda dialog: trouble.append(dialog.message))
    page.on("request", lambda request: trouble.append(request.url) if request.url != file.as_uri() else None)
    page.goto(file.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(e => e.open = true)")
    return page, trouble


@pytest.mark.parametrize("size", _SIZES)
def test_nothing_sticks_out_and_nothing_is_asked_for(browser: Any, files: dict[str, Path], size: str) -> None:
    for name, file in files.items():
        page, trouble = opened(browser, file, size)
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= _SIZES[size][0], name
        assert trouble == [], name
        page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_is_legible(browser: Any, files: dict[str, Path], scheme: str) -> None:
    for name in ("rejected", "deadlocked", "crashed"):
        page, _ = opened(browser, files[name], "desk", scheme)
        result = page.evaluate(page_checks.CONTRAST)
        assert result["seen"] > 100
        assert result["poor"] == [], name
        page.close()


def test_dark_is_dark_and_light_is_light(browser: Any, files: dict[str, Path]) -> None:
    sums = {}
    for scheme in ("light", "dark"):
        page, _ = opened(browser, files["accepted"], "desk", scheme)
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        sums[scheme] = sum(int(part) for part in colour.removeprefix("rgb(").removesuffix(")").split(","))
        page.close()
    assert sums["light"] > 600
    assert sums["dark"] < 150


def test_hostile_text_stays_text(browser: Any, files: dict[str, Path]) -> None:
    page, trouble = opened(browser, files["hostile"], "desk")
    assert page.title().startswith("Not accepted yet: 45 of 100: </script><script>")
    assert page.evaluate("[document.scripts.length, document.images.length]") == [0, 0]
    assert page.evaluate("document.querySelectorAll('main section').length") >= 5
    assert trouble == []
    page.close()


def test_what_scrolls_can_be_scrolled_by_keyboard(browser: Any, files: dict[str, Path]) -> None:
    for name in ("rejected", "deadlocked"):
        page, _ = opened(browser, files[name], "phone")
        assert page.evaluate(page_checks.UNREACHABLE) == [], name
        page.close()


def test_a_line_in_the_margin_leads_to_its_finding_and_back(browser: Any, files: dict[str, Path]) -> None:
    page, _ = opened(browser, files["rejected"], "desk")
    page.click("#line-0-36 a")
    assert page.evaluate("document.querySelector(':target').id") == "finding-2"
    page.click("#finding-2 figcaption a")
    assert page.evaluate("document.querySelector(':target').id") == "line-0-36"
    page.close()


def test_on_paper_the_findings_are_there_and_the_navigation_is_not(
    browser: Any, files: dict[str, Path]
) -> None:
    page, _ = opened(browser, files["rejected"], "desk")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.querySelector('nav')).display") == "none"
    assert page.is_visible("#finding-1")
    page.close()
