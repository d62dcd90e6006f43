"""Asking a provider over HTTP, whatever it answers: nobody waits long, follows it elsewhere, or reads without end."""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import anyio
import httpx

from grader import __version__
from grader.http.connection import authorities, reason_of
from grader.web.sign_on.problem import SignOnError, not_believed, unreachable

STEP_S, WHOLE_S = 5.0, 10.0
"""For each piece of an answer, and for all of it."""
MOST_BYTES = 256 << 10
_HEADERS = {
    "User-Agent": f"grader/{__version__}",
    "Accept": "application/json",
    # A few bytes could unpack to any number of them.
    "Accept-Encoding": "identity",
}


@dataclass(frozen=True, slots=True)
class ProviderAnswer:
    """An answer: its status, and the object that its JSON is ({} where it is none)."""

    status: int
    fields: Mapping[str, Any]


async def ask(
    title: str,
    method: str,
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    body: str | None = None,
) -> ProviderAnswer:
    """What a provider, known to people by `title`, answers at an address.

    Raises:
        SignOnError: it does not answer in time or fails, leads elsewhere, or says too much.
    """
    what = f"{method} {url.partition('?')[0]}"
    try:
        with anyio.fail_after(WHOLE_S):
            async with httpx.AsyncClient(timeout=STEP_S, verify=_context()) as client:
                sent = {**_HEADERS, **(headers or {})}
                async with client.stream(method, url, headers=sent, content=body) as response:
                    return ProviderAnswer(response.status_code, _object(await _read(title, what, response)))
    except TimeoutError:
        raise unreachable(title, f"{what}: no whole answer within {WHOLE_S:g} s") from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise unreachable(title, f"{what}: {reason_of(error)}") from None


async def ask_for_object(
    title: str, url: str, *, headers: Mapping[str, str] | None = None
) -> Mapping[str, Any]:
    """The object that lies at an address.

    Raises:
        SignOnError: as `ask`, or there is none.
    """
    answer = await ask(title, "GET", url, headers=headers)
    if answer.status != 200 or not answer.fields:
        raise not_believed(title, f"GET {url.partition('?')[0]}: {answer.status}, not an object")
    return answer.fields


async def _read(title: str, what: str, response: httpx.Response) -> bytes:
    if response.status_code >= 500 or response.status_code == 429:
        raise unreachable(title, f"{what}: {response.status_code}")
    if response.is_redirect:
        raise not_believed(title, f"{what}: {response.status_code}, it leads elsewhere")
    if response.headers.get("content-encoding", "identity") != "identity":
        raise not_believed(title, f"{what}: packed, which nobody asked for")
    body = bytearray()
    async for piece in response.aiter_raw():
        body += piece
        if len(body) > MOST_BYTES:
            raise _too_much(title, what)
    return bytes(body)


def _too_much(title: str, what: str) -> SignOnError:
    return not_believed(title, f"{what}: more than {MOST_BYTES >> 10} KiB")


def _object(body: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


@cache
def _context() -> ssl.SSLContext:
    # Reading all authorities takes tens of milliseconds, during which nobody else would be served.
    found = authorities()
    return httpx.create_ssl_context() if isinstance(found, bool) else found
