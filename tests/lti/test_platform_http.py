"""Answers of learning platforms that are none: too large, too slow, from elsewhere, in another form."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from grader.lti import platform_http
from grader.lti.platform_http import PlatformError, ask, platform_address
from tests.web.conftest import serving
from tests.web.lti_visits import close_connections


async def _drops() -> AsyncIterator[bytes]:
    for _ in range(200):
        yield b" "
        await asyncio.sleep(0.02)


async def _flood() -> AsyncIterator[bytes]:
    for _ in range(100):
        yield b"0" * 100_000


async def answer(request: Request) -> Response:
    what = request.path_params["what"]
    if what == "elsewhere":
        return RedirectResponse("/fine")
    if what in ("drops", "flood"):
        return StreamingResponse(_drops() if what == "drops" else _flood())
    if what == "fine":
        return JSONResponse({"good": True})
    if what == "busy":
        return JSONResponse({"error": "slow_down"}, 429, {"retry-after": "90"})
    if what == "page":
        return Response("<html>" + "secret" * 100, 403)
    return Response("no JSON")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving(Starlette(routes=[Route("/{what}", answer)])) as url:
        yield url
    close_connections()


def test_an_answer_is_read(url: str) -> None:
    assert ask("GET", f"{url}/fine").json() == {"good": True}


@pytest.mark.parametrize(
    ("what", "said"),
    [("elsewhere", "answered 307"), ("flood", "without an end"), ("drops", "without an end")],
)
def test_nobody_is_led_on_or_kept(what: str, said: str, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform_http, "MOST_S", 0.3)
    with pytest.raises(PlatformError, match=said) as caught:
        ask("GET", f"{url}/{what}")
    assert caught.value.passing


def test_a_platform_that_wants_to_be_left_alone_is(url: str) -> None:
    with pytest.raises(PlatformError, match="slow_down") as caught:
        ask("GET", f"{url}/busy")
    assert (caught.value.status, caught.value.wait_s) == (429, 90.0)


def test_nothing_of_a_page_stands_in_an_error(url: str) -> None:
    with pytest.raises(PlatformError) as caught:
        ask("GET", f"{url}/page")
    assert "secret" not in str(caught.value)


def test_what_is_no_json_is_said_so(url: str) -> None:
    with pytest.raises(PlatformError, match="no JSON"):
        ask("GET", f"{url}/text").json()


def test_a_platform_that_is_not_there_may_come_back() -> None:
    with pytest.raises(PlatformError, match="could not be reached") as caught:
        ask("GET", "http://127.0.0.1:1/")
    assert caught.value.passing


@pytest.mark.parametrize(
    "address",
    [
        "http://moodle.example/x",
        "ftp://moodle.example",
        "moodle",
        "https://",
        "https://a:b@x",
        "https://x:99999/",
    ],
)
def test_only_safe_addresses_are_asked(address: str) -> None:
    assert platform_address(address) is not None
    with pytest.raises(PlatformError):
        ask("GET", address)


@pytest.mark.parametrize(
    "address", ["https://moodle.example/a?b=c", "http://localhost:8080/x", "http://127.0.0.1/"]
)
def test_addresses_by_https_or_of_this_machine_are_good(address: str) -> None:
    assert platform_address(address) is None
