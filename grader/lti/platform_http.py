"""Asking a learning platform over HTTP: with an end to waiting and to what is read, and no way to be led elsewhere.

Whatever it does wrong is a `PlatformError` that says so in a sentence, and whether it may be over soon. Never holds a
token; what is in one never stands in an error.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import httpx

from grader import __version__
from grader.errors import GraderError

TIMEOUT = httpx.Timeout(8.0, connect=4.0)
MOST_BYTES, MOST_S = 4 << 20, 20.0
"""Of one answer; the timeouts are for each piece of it."""
_THIS_MACHINE = ("localhost", "127.0.0.1", "::1")
_SHOWN = 200
_MOST_WAIT_S = 3600.0
_SECONDS = re.compile(r"\d{1,6}")
# The request itself is at fault. Whatever else is answered may be answered otherwise later: by a platform that
# restarts, counts requests, learns of our new key, or has its settings mended.
_LASTING = frozenset({400, 404, 405, 406, 410, 413, 414, 415, 422})


class PlatformError(GraderError):
    """A platform could not be asked, or answered something else than it should.

    Attributes:
        passing: whether it may answer rightly later; status: of the answer, None where there was none.
        wait_s: for how long it wants to be left alone; None: it did not say.
    """

    def __init__(
        self, message: str, *, passing: bool, status: int | None = None, wait_s: float | None = None
    ) -> None:
        super().__init__(message)
        self.passing = passing
        self.status = status
        self.wait_s = wait_s


@dataclass(frozen=True, slots=True)
class PlatformAnswer:
    """What came back; `url` is where from."""

    url: str
    status: int
    headers: httpx.Headers
    body: bytes

    def json(self) -> Any:
        """The body as JSON.

        Raises:
            PlatformError: it is none.
        """
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            raise PlatformError(
                f"{_host(self.url)} answered something that is no JSON", passing=True
            ) from None


def platform_address(text: str) -> str | None:
    """Why this is no address to ask a platform at, or None: it is one. Plain http is for this machine alone."""
    parts = urlsplit(text)
    try:
        host = parts.hostname
        _ = parts.port
    except ValueError:
        return "This is no address."
    if parts.scheme not in ("https", "http") or not host or parts.username or parts.fragment:
        return "Write an address that begins with https://."
    if parts.scheme == "http" and host not in _THIS_MACHINE:
        return "Over plain http anybody on the way could pose as the platform. Write https://."
    return None


def ask(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    data: Mapping[str, str] | None = None,
    content: Any = None,
) -> PlatformAnswer:
    """What an address answers; `data` is sent as a form, `content` as JSON.

    Raises:
        PlatformError: it could not be reached, took too long, or answered with an error or far too much.
    """
    problem = platform_address(url)
    if problem is not None:
        raise PlatformError(f"{url[:_SHOWN]}: {problem}", passing=False)
    sent = {"User-Agent": f"grader/{__version__}", **(headers or {})}
    body = None if content is None else json.dumps(content).encode()
    try:
        with _client().stream(method, url, headers=sent, data=data, content=body) as response:
            answer = PlatformAnswer(url, response.status_code, response.headers, _whole(response))
    except httpx.TimeoutException:
        raise PlatformError(f"{_host(url)} did not answer in time", passing=True) from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise PlatformError(
            f"{_host(url)} could not be reached: {str(error)[:_SHOWN] or type(error).__name__}", passing=True
        ) from None
    if not 200 <= answer.status < 300:
        raise PlatformError(
            f"{_host(url)} answered {answer.status}{_said(answer.body)}",
            passing=answer.status not in _LASTING,
            status=answer.status,
            wait_s=_wait(answer.headers.get("retry-after", "")),
        )
    return answer


@cache
def _client() -> httpx.Client:
    # Made once: reading the machine's authorities takes longer than most answers do.
    return httpx.Client(timeout=TIMEOUT, follow_redirects=False)


def _whole(response: httpx.Response) -> bytes:
    read, end = bytearray(), time.monotonic() + MOST_S
    for piece in response.iter_bytes():
        read += piece
        if len(read) > MOST_BYTES or time.monotonic() > end:
            raise PlatformError(f"{_host(str(response.url))} answered without an end", passing=True)
    return bytes(read)


def _said(body: bytes) -> str:
    """What an error says of itself, in the fields that errors have; nothing of a whole page."""
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(fields, dict):
        return ""
    said = [str(fields[name]) for name in ("error", "error_description", "message") if fields.get(name)]
    return f": {'; '.join(said)[:_SHOWN]}" if said else ""


def _wait(text: str) -> float | None:
    return min(float(text), _MOST_WAIT_S) if _SECONDS.fullmatch(text.strip()) else None


def _host(url: str) -> str:
    return urlsplit(url).netloc or "the platform"
