"""How many requests are worked on at once: more would only make all of them wait for longer than anybody does.

Counted is what has been received; whoever still sends holds no place. Liveness is told in any case.
"""

from __future__ import annotations

from fastapi import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from grader.translation import gettext
from grader.web.error_responses import RETRY_S, answer

MOST_REQUESTS = 2000
_ALWAYS = "/healthz"


class Overload:
    """Answers 503, and when to come again, while there are too many requests; live streams count as requests."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._num = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the request through, unless it is one too many."""
        if scope["type"] != "http" or scope["path"] == _ALWAYS:
            await self._app(scope, receive, send)
            return
        if self._num >= MOST_REQUESTS:
            refusal = answer(
                Request(scope, receive),
                503,
                gettext(
                    "Very many are here at this moment. Nothing of yours is lost; try again in a moment."
                ),
                {"Retry-After": str(RETRY_S)},
            )
            await refusal(scope, receive, send)
            return
        whole = False

        async def received() -> Message:
            nonlocal whole
            if whole:
                return await receive()
            self._num -= 1
            try:
                message = await receive()
            finally:
                self._num += 1
            whole = not message.get("more_body", False)
            return message

        self._num += 1
        try:
            await self._app(scope, received, send)
        finally:
            self._num -= 1
