"""Sign-ons that have begun in a browser and wait for its return: each a signed cookie of its own, for ten minutes.

Several tabs at once have one each. What comes back counts only with the cookie of its state: in the browser that began,
with the provider that it began with, once.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import astuple, dataclass

from itsdangerous import BadSignature, URLSafeTimedSerializer
from starlette.requests import Request
from starlette.responses import Response

from grader.web.sign_on.openid_client import AuthorizationRequest

LIFETIME_S = 600
MOST_AT_ONCE = 6
_NAME = "sign-on-"
_STATE = re.compile(r"[\w-]{22}", re.ASCII)
_MOST_PLACE = 400


@dataclass(frozen=True, slots=True)
class PendingSignOn:
    """One sign-on that waits.

    Attributes:
        provider: its id; request: what was asked of it.
        place: page of ours to go to afterwards.
        linking: the nonce of the session whose account shall have the identity; "": it is to sign somebody in.
    """

    provider: str
    request: AuthorizationRequest
    place: str
    linking: str = ""


class PendingSignOns:
    """Writes and reads their cookies."""

    def __init__(self, secret: str) -> None:
        self._signer = URLSafeTimedSerializer(secret, salt="grader.sign-on")

    def new(self, provider: str, redirect_uri: str, place: str, linking: str = "") -> PendingSignOn:
        """One that begins now; `place` is a page of ours, and the first page where it is too long to keep."""
        request = AuthorizationRequest(
            redirect_uri, secrets.token_urlsafe(16), secrets.token_urlsafe(16), secrets.token_urlsafe(48)
        )
        return PendingSignOn(provider, request, place if len(place) <= _MOST_PLACE else "/", linking)

    def keep(self, request: Request, response: Response, pending: PendingSignOn, *, secure: bool) -> None:
        """Let the browser that gets this response keep it; of very many, the oldest are dropped."""
        prefix = _cookie_name("", secure=secure)
        there = [name for name in request.cookies if name.startswith(prefix)]
        for name in sorted(there, key=lambda name: self._begun(request.cookies[name]))[: 1 - MOST_AT_ONCE]:
            _drop(response, name, secure=secure)
        value = self._signer.dumps(
            [pending.provider, astuple(pending.request), pending.place, pending.linking]
        )
        name = _cookie_name(pending.request.state, secure=secure)
        response.set_cookie(
            name, value, max_age=LIFETIME_S, path="/", secure=secure, httponly=True, samesite="lax"
        )

    def read(self, request: Request, state: str, *, secure: bool) -> PendingSignOn | None:
        """The one of this state, or None: it did not begin in this browser, or too long ago."""
        value = request.cookies.get(_cookie_name(state, secure=secure)) if _STATE.fullmatch(state) else None
        try:
            fields = self._signer.loads(value, max_age=LIFETIME_S) if value else None
        except BadSignature:
            return None
        if fields is None:
            return None
        provider, asked, place, linking = fields
        pending = PendingSignOn(provider, AuthorizationRequest(*asked), place, linking)
        return pending if pending.request.state == state else None

    def drop(self, response: Response, state: str, *, secure: bool) -> None:
        """It has been used, whatever came of it."""
        _drop(response, _cookie_name(state, secure=secure), secure=secure)

    def _begun(self, value: str) -> float:
        try:
            return float(self._signer.loads(value, max_age=LIFETIME_S, return_timestamp=True)[1].timestamp())
        except BadSignature:
            return 0.0


def _cookie_name(state: str, *, secure: bool) -> str:
    return f"__Host-{_NAME}{state}" if secure else f"{_NAME}{state}"


def _drop(response: Response, name: str, *, secure: bool) -> None:
    response.delete_cookie(name, path="/", secure=secure, httponly=True, samesite="lax")
