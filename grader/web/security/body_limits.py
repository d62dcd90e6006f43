"""How much a request may bring, and how long it may take: counted as it comes, before anything is kept of it.

Whoever shows neither a session nor a token gets room for a form, not for an upload; evidence that workers bring has
more, at its own address, where it is read only after the token was. A length that is announced and too large is refused
before a byte is read.
"""

from __future__ import annotations

import asyncio
import re
import time

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from grader.catalog.submissions.learner_files import MAX_FILE_BYTES, MAX_TOTAL_BYTES
from grader.store import files
from grader.translation import gettext

GUEST_BYTES = 64 << 10
MAX_EVIDENCE_BYTES = files.MAX_FILE_BYTES
_EVIDENCE = re.compile(r"/api/v1/worker/attempts/\d+/files/[a-z.-]+")
CLIENT_GONE = 499
"""Who hung up while sending: the log's status for it, as proxies have it; nobody is there to be answered."""
IDLE_S, WHOLE_S, GUEST_WHOLE_S = 20.0, 120.0, 20.0
"""A phone on a crowded network brings 4 MiB, or a guest's form, in that time; a slow-loris holds no place longer."""


class BodyLimits:
    """Wraps `receive`; whoever reads too much, or waits too long, gets an exception that answers 413 or 408."""

    def __init__(self, app: ASGIApp, *, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the request through with its body counted."""
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD", "OPTIONS"):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        known = "authorization" in headers or "session=" in headers.get("cookie", "")
        most, whole_s = (self._most(scope), WHOLE_S) if known else (GUEST_BYTES, GUEST_WHOLE_S)
        announced = headers.get("content-length", "")
        too_large = announced.isdigit() and int(announced) > most
        brought, started, whole = 0, time.monotonic(), False

        async def counted() -> Message:
            nonlocal brought, whole
            if too_large:
                raise _too_large()
            if whole:
                # What comes now is only the news that the client has gone; there is no hurry.
                return await receive()
            rest = min(IDLE_S, started + whole_s - time.monotonic())
            try:
                message = await asyncio.wait_for(receive(), max(0.0, rest))
            except TimeoutError:
                raise HTTPException(
                    408, gettext("The upload came too slowly. Send it again."), {"Connection": "close"}
                ) from None
            if message["type"] == "http.disconnect":
                raise HTTPException(CLIENT_GONE, "the client hung up")
            brought += len(message.get("body", b""))
            whole = not message.get("more_body", False)
            if brought > most:
                raise _too_large()
            return message

        try:
            await self._app(scope, counted, send)
        finally:
            form = scope.get("state", {}).get("form")
            if form is not None:
                await form.close()

    def _most(self, scope: Scope) -> int:
        brings_evidence = scope["method"] == "PUT" and _EVIDENCE.fullmatch(scope["path"])
        return max(self._max_bytes, MAX_EVIDENCE_BYTES) if brings_evidence else self._max_bytes


def _too_large() -> HTTPException:
    return HTTPException(
        413,
        gettext(
            "This is too large: a script may have {file} MiB, and all of them {total} MiB. Hand in train.py and the "
            "modules it imports, no data and no weights; clear the outputs of a notebook first."
        ).format(file=MAX_FILE_BYTES >> 20, total=MAX_TOTAL_BYTES >> 20),
    )
