"""Headers that every answer carries: what browsers may load, that nobody frames us, the request's id.

A route that needs another policy (a stored report carries its own styles) sets that header itself, and keeps it.
"""

from __future__ import annotations

import re
import secrets

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

CSP = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
REPORT_CSP = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; base-uri 'none'; "
    "frame-ancestors 'none'; sandbox allow-popups"
)
"""Of a report, one file with its styles inside: nothing else is loaded, nothing runs, nothing is sent."""


def framed_csp(ancestors: str, *, form_action: str = "'self'") -> str:
    """The policy of a page that may stand in a frame of these origins, and sends its forms to these.

    Where it says who may frame, browsers do not look at X-Frame-Options.
    """
    return CSP.replace("frame-ancestors 'none'", f"frame-ancestors {ancestors}").replace(
        "form-action 'self'", f"form-action {form_action}"
    )


_ALWAYS = {
    "content-security-policy": CSP,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}
_GIVEN_ID = re.compile(r"[A-Za-z0-9._-]{8,64}")


class SecurityHeaders:
    """Adds them; the id that a proxy gave a request is kept."""

    def __init__(self, app: ASGIApp, *, secure: bool) -> None:
        self._app = app
        self._always = dict(_ALWAYS)
        if secure:
            self._always["strict-transport-security"] = "max-age=31536000"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the request through, and add to its answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get("x-request-id", "")
        request_id = given if _GIVEN_ID.fullmatch(given) else secrets.token_hex(8)
        scope.setdefault("state", {})["request_id"] = request_id

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._always.items():
                    headers.setdefault(name, value)
                headers["x-request-id"] = request_id
            await send(message)

        await self._app(scope, receive, with_headers)
