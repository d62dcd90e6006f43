"""What each request did, for the log and the metrics: route, status, time, request and attempt ids.

Addresses are logged as routes (`/attempts/{attempt_id}`), never with what somebody typed into a query.
"""

from __future__ import annotations

import time

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from grader.web.service import WebService

_log = structlog.get_logger("grader.web")


class RequestLog:
    """Counts and logs every request."""

    def __init__(self, app: ASGIApp, *, service: WebService) -> None:
        self._app = app
        self._metrics = service.request_metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the request through, and note how it went."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = time.monotonic(), 500

        async def with_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, with_status)
        finally:
            self._record(scope, status, time.monotonic() - started)

    def _record(self, scope: Scope, status: int, seconds: float) -> None:
        # A route that was not found has no name; what was typed instead is nobody's label.
        route = getattr(scope.get("route"), "path", "(none)")
        method = scope["method"] if scope["method"] in _METHODS else "(other)"
        self._metrics.answered.labels(method, route, str(status)).inc()
        self._metrics.seconds.labels(method, route).observe(seconds)
        state = scope.get("state", {})
        visitor = state.get("visitor")
        _log.info(
            "request",
            method=method,
            route=route,
            status=status,
            ms=round(seconds * 1000, 1),
            request_id=state.get("request_id"),
            attempt_id=state.get("attempt_id") or scope.get("path_params", {}).get("attempt_id"),
            person_id=visitor.account.id if visitor is not None else None,
        )


_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
