"""Which languages whoever asks for a page reads: the one chosen on it, that of a cookie, then those of the browser."""

from __future__ import annotations

import re

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from grader.translation import ENGLISH, chosen, in_language, languages

NAME = "language"
"""Of the cookie, and of the part of an address that chooses one."""
LANGUAGES = {
    "en": "English",
    "de": "Deutsch",
    "fr": "Français",
    "es": "Español",
    "it": "Italiano",
    "nl": "Nederlands",
}
"""What they call themselves; others are told by their codes."""
_WANTED = re.compile(
    r"([a-z]{2,3})(?:-[\w-]+)?\s*(?:;\s*q\s*=\s*([01](?:\.\d{1,3})?))?", re.ASCII | re.IGNORECASE
)
_MOST = 20
_YEAR_S = 365 * 86400


def read_languages(request: Request) -> tuple[str, ...]:
    """Codes such as `de`, the most wanted first."""
    return _read(request)


def here_in(request: Request, code: str) -> str:
    """The address of this page in another language, seen from it: what is not there says nothing of where it is."""
    return f"?{request.url.include_query_params(**{NAME: code}).query}"


class PageLanguage:
    """Makes every page in the language of its reader; one that was chosen is kept in a cookie.

    What programs read, below the address `api`, is in English.
    """

    def __init__(self, app: ASGIApp, api: str) -> None:
        self._app, self._api = app, api

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the request through; texts that its answer is made of are in that language."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        asked = HTTPConnection(scope)
        on_page = asked.query_params.get(NAME, "")

        async def with_cookie(message: Message) -> None:
            if message["type"] == "http.response.start":
                cookie = f"{NAME}={on_page}; Path=/; Max-Age={_YEAR_S}; HttpOnly; SameSite=Lax"
                MutableHeaders(scope=message).append("set-cookie", cookie)
            await send(message)

        with in_language(ENGLISH if asked.url.path.startswith(self._api) else chosen(_read(asked))):
            await self._app(scope, receive, with_cookie if on_page in languages() else send)


def _read(asked: HTTPConnection) -> tuple[str, ...]:
    parts = asked.headers.get("accept-language", "").split(",")[:_MOST]
    found = [match for part in parts if (match := _WANTED.fullmatch(part.strip())) is not None]
    wanted = sorted(found, key=lambda match: -float(match[2] or 1))
    chosen_here = asked.query_params.get(NAME, ""), asked.cookies.get(NAME, "")
    return (*chosen_here, *(match[1].lower() for match in wanted))
