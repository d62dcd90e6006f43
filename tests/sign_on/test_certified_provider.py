"""Sign-on with a certified provider, through its own pages: each kind of client, again, refused, linked, signed out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from urllib.parse import urljoin

import httpx
import pytest

from grader.store.people import own_courses, people
from grader.store.tables.person import Role
from tests.sign_on.conftest import Site
from tests.sign_on.provider import CLIENTS, sign_on, submit

pytestmark = pytest.mark.slow


@pytest.fixture
def browser() -> Iterator[httpx.Client]:
    with httpx.Client(follow_redirects=True, timeout=30) as made:
        yield made


def who(browser: httpx.Client, site: Site) -> str | None:
    answer = browser.get(f"{site.url}/api/v1/me")
    return str(answer.json()["login"]) if answer.status_code == 200 else None


@pytest.mark.parametrize("client", CLIENTS)
def test_whoever_signs_on_comes_in_with_name_address_and_roles(
    site: Site, browser: httpx.Client, client: str
) -> None:
    school = site.use(client)
    page = sign_on(browser, browser.get(f"{site.url}/sign-on/uni?next=/account"), "eve")
    assert str(page.url) == f"{site.url}/account"
    assert "Eve Ekberg" in page.text
    assert who(browser, site) == "eve"
    account = people.account_by_login(school.store, "eve")
    assert account is not None
    assert account.role is Role.INSTRUCTOR
    assert [one.role for one in own_courses.courses_of(school.store, account.id)] == [Role.INSTRUCTOR]
    # Signed in there already: nobody is asked anything.
    browser.cookies.delete("session", domain="127.0.0.1")
    assert who(browser, site) is None
    again = browser.get(f"{site.url}/sign-on/uni?next=/account")
    assert str(again.url) == f"{site.url}/account"
    assert who(browser, site) == "eve"


def test_who_stops_there_is_told_that_nothing_happened(site: Site, browser: httpx.Client) -> None:
    site.use("none")
    page = browser.get(f"{site.url}/sign-on/uni")
    cancel = re.search(r'href="([^"]*abort[^"]*)"', page.text)
    assert cancel is not None, page.text
    back = browser.get(urljoin(str(page.url), unescape(cancel[1])))
    assert back.status_code == 403
    assert "You were not signed in" in back.text
    assert who(browser, site) is None


def test_staff_links_while_signed_in_and_signs_out_there_too(site: Site, browser: httpx.Client) -> None:
    school = site.use("client_secret_basic")
    cookie = school.client("ines").cookies["session"]
    browser.cookies.set("session", cookie, domain="127.0.0.1")
    page = submit_add(browser, browser.get(f"{site.url}/account"))
    onward = re.search(rf'href="({re.escape(site.issuer)}[^"]+)"', page.text)
    assert onward is not None
    page = sign_on(browser, browser.get(unescape(onward[1])), "ines-there")
    assert "ines@uni.example opens this account from now on" in page.text
    browser.cookies.delete("session", domain="127.0.0.1")
    page = browser.get(f"{site.url}/sign-on/uni")
    assert who(browser, site) == "ines"
    csrf = re.search(r'name="csrf" value="([^"]+)"', page.text)
    assert csrf is not None
    page = browser.post(f"{site.url}/sign-out", data={"csrf": csrf[1]})
    assert "Sign out of University account" in page.text
    page = browser.get(f"{site.url}/sign-on/uni/sign-out")
    assert str(page.url).startswith(site.issuer)
    page = submit(browser, page, logout="yes")
    assert str(page.url).startswith(f"{site.url}/sign-in")
    assert "/interaction/" in str(browser.get(f"{site.url}/sign-on/uni").url), "it asks who this is again"


def submit_add(browser: httpx.Client, page: httpx.Response) -> httpx.Response:
    csrf = re.search(r'name="csrf" value="([^"]+)"', page.text)
    assert csrf is not None
    return browser.post(urljoin(str(page.url), "/account/sign-on/uni/add"), data={"csrf": csrf[1]})
