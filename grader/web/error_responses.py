"""What a request is answered with when it cannot be served: a page for people, JSON for programs, the status that fits.

A database that is away is no fault of the visitor's: 503, and when to come again. What went wrong inside stands in the
log under the request's id, never in the answer.
"""

from __future__ import annotations

import logging
import re
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from grader.errors import GraderError, InfraError, UsageError
from grader.store.database import StoreUnavailableError
from grader.translation import N_, gettext
from grader.web import flash
from grader.web.security.access import API, ChangePasswordFirstError, SignInFirstError
from grader.web.security.body_limits import CLIENT_GONE
from grader.web.service import WebService

RETRY_S = 5
_HAND_IN = re.compile(r"(/courses/\d+/tasks/\d+)/submit")
_log = logging.getLogger("grader.web")
_KINDS = {
    400: "bad_request",
    401: "sign_in",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    408: "too_slow",
    409: "conflict",
    413: "too_large",
    415: "unsupported",
    422: "invalid",
    429: "too_many",
    503: "unavailable",
}
_TITLES = {
    400: N_("That did not work"),
    403: N_("Not allowed"),
    404: N_("Nothing here"),
    405: N_("Not possible here"),
    408: N_("Too slow"),
    413: N_("Too large"),
    429: N_("Too many requests"),
    503: N_("Back in a moment"),
}
_OTHERWISE = N_("Something went wrong")


def error_response(
    status: int, message: str, *, kind: str = "", headers: dict[str, str] | None = None, **more: Any
) -> JSONResponse:
    """An error as the API answers it: `{"error": {"kind", "message", "lifted_at"}}`."""
    fields = {"kind": kind or _KINDS.get(status, "error"), "message": message, "lifted_at": None, **more}
    return JSONResponse({"error": fields}, status, headers)


def add_handlers(app: FastAPI) -> None:
    """Let the app answer all faults this way."""
    for fault, answer in (
        (HTTPException, _http),
        (RequestValidationError, _invalid),
        (GraderError, _ours),
    ):
        app.add_exception_handler(fault, answer)


def answer(request: Request, status: int, message: str, headers: dict[str, str] | None = None) -> Response:
    """An answer that says what is wrong: JSON below `/api/`, a page anywhere else."""
    if request.url.path.startswith(API):
        return error_response(status, message, headers=headers)
    service: WebService = request.app.state.service
    try:
        return service.render(
            request,
            "error.html.j2",
            visitor=getattr(request.state, "visitor", None),
            status_code=status,
            headers=headers,
            title=gettext(_TITLES.get(status, _OTHERWISE)),
            text=message,
            status=status,
        )
    except Exception:  # noqa: BLE001 - whatever it is, there is no page after this one
        # The page of last resort needs nothing that could be broken, too.
        _log.exception("the error page itself failed")
        return HTMLResponse("<!doctype html><title>Grader</title><p>Something went wrong.", status, headers)


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == CLIENT_GONE:
        return Response(status_code=CLIENT_GONE)
    if isinstance(error, SignInFirstError) and not request.url.path.startswith(API):
        return RedirectResponse(f"/sign-in?next={error.place}", 303)
    if isinstance(error, ChangePasswordFirstError) and not request.url.path.startswith(API):
        return RedirectResponse("/password", 303)
    headers = dict(error.headers) if error.headers else None
    hand_in = _HAND_IN.fullmatch(request.url.path)
    if error.status_code == 413 and hand_in is not None:
        # The form was not read, so there is none to show again but an empty one.
        service: WebService = request.app.state.service
        aside = gettext("Nothing was handed in, and no attempt is spent.")
        text = f"{error.detail} {aside}"
        back = flash.redirect(hand_in[1], service.secret, text, kind="problem")
        back.headers.update(headers or {})
        return back
    return answer(request, error.status_code, str(error.detail), headers)


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    faults = error.errors()
    if any(fault["loc"][0] == "path" for fault in faults):
        # An address that could not exist is one that does not.
        return answer(request, 404, gettext("There is nothing here."))
    # What was sent is not repeated: it may be a password.
    text = "; ".join(
        f"{'.'.join(map(str, fault['loc'][1:])) or 'body'}: {fault['msg']}" for fault in faults[:5]
    )
    return answer(request, 422, text)


async def _ours(request: Request, error: Exception) -> Response:
    if isinstance(error, UsageError):
        return answer(request, 400, str(error))
    if isinstance(error, StoreUnavailableError):
        _log.error("%s", error)
        return answer(
            request,
            503,
            gettext(
                "The grader cannot reach its database just now. Nothing of yours is lost; try again in a moment."
            ),
            {"Retry-After": str(RETRY_S)},
        )
    _log.error("%s: %s", type(error).__name__, error)
    if isinstance(error, InfraError):
        return answer(
            request,
            503,
            gettext("Something the grader needs is not available just now. Try again in a moment."),
            {"Retry-After": str(RETRY_S)},
        )
    return answer(request, 500, gettext("This task cannot be shown: its author has to mend it."))


class UnexpectedErrors:
    """Answers 500 where something failed that nobody foresaw; within `SecurityHeaders`, so that they are added."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the request through."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = False

        async def watched(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except Exception as error:
            if begun:
                raise
            _log.error("a request failed", exc_info=error)
            request = Request(scope, receive)
            text = gettext("Something went wrong on our side. It was noted; trying again may help.")
            told = answer(request, 500, text)
            await told(scope, receive, send)
