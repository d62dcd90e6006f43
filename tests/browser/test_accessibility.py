"""Every page as axe-core judges it: nothing wrong of any impact, in both themes, on a phone and at a desk."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from grader.store.queue import queue
from tests.browser import page_checks
from tests.browser.conftest import Windows
from tests.browser.views import View, views
from tests.web.conftest import Served, make_school, serving
from tests.web.routes import ways

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SIZES = {"phone": {"width": 390, "height": 844}, "desk": {"width": 1280, "height": 900}}
# A theme changes colours alone and a width what stands where: axe judges each of both once, because it takes its time.
# Contrast, which theme and width could spoil together, is measured in all four looks.
# German is longer, so it is looked at where there is less room.
LOOKS = {
    "en": (("light", "desk", True), ("dark", "desk", False)),
    "de": (("dark", "phone", True), ("light", "phone", False)),
}

# A figure or a sign alone is text, too, and is to be as legible: by itself axe leaves both open.
JUDGE = """() => axe.run(document, {
    resultTypes: ['violations', 'incomplete'], selectors: false,
    checks: {'color-contrast': {options: {ignoreLength: true, ignoreUnicode: false}}},
    rules: {'label-content-name-mismatch': {enabled: true}},
  }).then(results => {
    const told = found => found.flatMap(({id, impact, nodes}) => nodes.map(({html, any}) =>
      ({id, impact, html: html.slice(0, 120), why: any[0]?.data?.messageKey ?? ''})));
    return {violations: told(results.violations), incomplete: told(results.incomplete)};
  })"""
# What is sent to be kept, shown inside a page, followed or watched by a machine; and the page of a pair, which has its
# numbers from the page before it.
NO_PAGES = {
    "/account/data.zip",
    "/courses/{course_id}/exports/canvas.csv",
    "/courses/{course_id}/exports/moodle.csv",
    "/courses/{course_id}/exports/submissions.zip",
    *(f"/attempts/{{attempt_id}}/{place}" for place in ("live", "source", "files/{name}")),
    *(
        f"/courses/{{course_id}}/tasks/{{course_task_id}}/{place}"
        for place in ("skeleton", "notebook", "figures/{name}")
    ),
    *(
        f"/courses/{{course_id}}/exports/{file}"
        for file in ("gradebook.csv", "gradebook.json", "attempts.csv")
    ),
    *(
        f"/courses/{{course_id}}/exports/{{course_task_id}}/{file}"
        for file in ("gradescope.zip", "junit.xml")
    ),
    "/courses/{course_id}/extensions.csv",
    *(f"/courses/{{course_id}}/people/{file}" for file in ("one-time-passwords.csv", "join-links.csv")),
    # Where a provider of sign-on is met: what they show is the provider's, or the sign-in page.
    *(f"/sign-on/{{provider_id}}{place}" for place in ("", "/callback", "/sign-out")),
    *("/lti/keys", "/static/{digest}/{name}", "/healthz", "/readyz", "/metrics"),
    *(f"/courses/{{course_id}}/audit.{kind}" for kind in ("csv", "json")),
    "/courses/{course_id}/similarity/{course_task_id}/{first}/{second}",
}

# Where axe cannot tell what is behind a text: drawn in a picture, or scrolled out of sight in a box of its own. The
# contrast of all of these is measured by `page_checks` against what they stand on.
CANNOT_TELL = ("imgNode", "bgOverlap", "elmPartiallyObscured")


@pytest.fixture(scope="module")
def site(empty_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One school behind one server, for all pages."""
    folder = tmp_path_factory.mktemp("site")
    database = folder / "grader.db"
    database.write_bytes(empty_database.read_bytes())
    school = make_school(database, folder)
    with serving(school.app) as url:
        yield Served(school, url)
    school.store.close()


@pytest.fixture(scope="module")
def all_views(site: Served) -> dict[str, View]:
    return views(site.school)


@pytest.fixture(scope="module")
def axe() -> str:
    """The text of axe-core."""
    module = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-core is not installed")
    script: str = module.Axe().axe_script
    return script


def faults(page: Any, axe: str, language: str) -> list[str]:
    """What is wrong with the page that stands there, in each look that it has in this language."""
    found = []
    page.evaluate(axe)
    for theme, size, by_axe in LOOKS[language]:
        page.emulate_media(color_scheme=theme)
        page.set_viewport_size(SIZES[size])
        wrong = list(page.evaluate(page_checks.CONTRAST)["poor"])
        if by_axe:
            judged = page.evaluate(JUDGE)
            wrong += judged["violations"]
            wrong += [one for one in judged["incomplete"] if one["why"] not in CANNOT_TELL]
        found += [f"{language}, {theme}, {size}: {json.dumps(one)}" for one in wrong]
    return found


@pytest.mark.parametrize("who", [None, "anna", "ben", "empty", "new", "ines", "otto", "ada", "tess", "otis"])
def test_axe_finds_nothing(
    site: Served, windows: Windows, all_views: dict[str, View], axe: str, who: str | None
) -> None:
    # A report alone may run no script: only so can axe run in it.
    window, alone = windows(site.url), windows(site.url, bypass_csp=True)
    for one in (window, alone):
        if who is not None:
            one.enter(site.school, who)
    wrong: dict[str, list[str]] = {}
    mine = {name: view for name, view in all_views.items() if view.login == who}
    for name, view in mine.items():
        page = (alone if view.address.endswith("/report") else window).page
        for language in LOOKS:
            # What somebody does there is done once.
            if language == "en" or view.act is None:
                page.set_extra_http_headers({"Accept-Language": language})
                page.set_viewport_size(SIZES["desk"])
                answer = page.goto(view.address, wait_until="domcontentloaded")
                assert answer.status == view.status, name
            if language == "en" and view.act is not None:
                view.act(page)
            if view.unfolded:
                page.evaluate("document.querySelectorAll('details').forEach(e => e.open = true)")
            if found := faults(page, axe, language):
                wrong.setdefault(name, []).extend(found)
    assert mine
    assert not wrong, "\n".join(f"{name}:\n  " + "\n  ".join(found) for name, found in wrong.items())


def test_no_page_is_left_out(site: Served, all_views: dict[str, View]) -> None:
    assert {view.login for view in all_views.values()} <= {
        None,
        "anna",
        "ben",
        "empty",
        "new",
        "ines",
        "otto",
        "ada",
        "tess",
        "otis",
    }
    looked_at = {view.address.partition("?")[0] for view in all_views.values()}
    posts = {way.path for way in ways(site.school.app) if way.method == "POST"}
    left = {
        way.path
        for way in ways(site.school.app)
        if way.method == "GET" and not way.is_api
        if not any(re.fullmatch(re.sub(r"{\w+}", "[^/]+", way.path), address) for address in looked_at)
    }
    # Addresses of forms alone lead back to the page that has the form.
    assert left - posts - NO_PAGES == set()


def test_what_renews_itself_does_so_in_place_and_not_while_it_is_used(site: Served, windows: Windows) -> None:
    window = windows(site.url)
    window.enter(site.school, "ines")
    page = window.page
    page.clock.install()
    page.goto("/queue?live=1")
    page.evaluate("document.body.dataset.loaded = 'once'")
    queue.report_worker(site.school.store, "a-new-worker", ["cpu"], 1)
    try:
        page.fill("#reason", "half a sen")
        page.clock.run_for(11_000)
        assert page.input_value("#reason") == "half a sen"
        assert not page.is_visible("text=a-new-worker")
        page.fill("#reason", "")
        page.focus("header a")
        page.clock.run_for(11_000)
        page.wait_for_selector("text=a-new-worker")
        assert page.get_attribute("body", "data-loaded") == "once"
        assert window.trouble == []
    finally:
        queue.forget_worker(site.school.store, "a-new-worker")
