"""A message for the next page: what was done, after the browser was sent on. Signed, shown once, kept nowhere."""

from __future__ import annotations

from dataclasses import dataclass

from itsdangerous import BadSignature, URLSafeTimedSerializer
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

_NAME, _SALT, _LIFETIME_S = "message", "grader.message", 60
_MOST = 600


@dataclass(frozen=True, slots=True)
class FlashMessage:
    """What a page says at its top; `kind`: `done`, `problem` or `note`."""

    kind: str
    text: str


def redirect(place: str, secret: str, text: str = "", *, kind: str = "done") -> RedirectResponse:
    """Send the browser on (303) to a page of ours, which shows the message."""
    response = RedirectResponse(place if place.startswith("/") and place[:2] != "//" else "/", 303)
    if text:
        value = URLSafeTimedSerializer(secret, salt=_SALT).dumps([kind, text[:_MOST]])
        response.set_cookie(_NAME, value, max_age=_LIFETIME_S, httponly=True, samesite="lax")
    return response


def read(request: Request, secret: str) -> FlashMessage | None:
    """The message that the page before left, or None."""
    value = request.cookies.get(_NAME)
    try:
        fields = (
            URLSafeTimedSerializer(secret, salt=_SALT).loads(value, max_age=_LIFETIME_S) if value else None
        )
    except BadSignature:
        return None
    return None if fields is None else FlashMessage(*fields)


def clear(response: Response) -> None:
    """Show it no second time."""
    response.delete_cookie(_NAME, httponly=True, samesite="lax")
