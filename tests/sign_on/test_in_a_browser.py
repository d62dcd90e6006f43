"""Sign-on in a real browser, which follows no form to another site: in, from the account's page, and out again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.conftest import SIZES, browser
from tests.sign_on.conftest import Site
from tests.sign_on.provider import be

__all__ = ["browser"]
# Its pages are not ours, and it signs people in at them as it likes.
_AT_PROVIDER = 30_000


@pytest.fixture
def page(browser: Any, site: Site) -> Iterator[Any]:
    width, height = SIZES["phone"]
    context = browser.new_context(base_url=site.url, viewport={"width": width, "height": height})
    context.set_default_timeout(_AT_PROVIDER)
    yield context.new_page()
    context.close()


def test_in_linked_and_out_again(site: Site, page: Any) -> None:
    school = site.use("client_secret_basic")
    page.goto("/account")
    page.click("text=Sign in with University account")
    be(page, "eve")
    page.wait_for_url(f"{site.url}/account")
    assert "Eve Ekberg" in page.text_content("main")
    page.click("text=Sign out >> nth=0")
    page.click("text=Sign out of University account")
    page.click("button[value=yes]")
    page.wait_for_url(f"{site.url}/sign-in**")
    cookies = dict(school.client("ines").cookies)
    page.context.add_cookies([{"name": n, "value": v, "url": site.url} for n, v in cookies.items()])
    page.goto("/account")
    page.click("text=Add University account")
    page.click("text=Go on to University account")
    be(page, "ines-there")
    page.wait_for_url(f"{site.url}/account")
    assert "ines@uni.example opens this account" in page.text_content("main")
    overflow = page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
    assert not overflow
