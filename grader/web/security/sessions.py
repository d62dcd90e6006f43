"""Who a browser's cookie says it is: signed, for one account and one epoch of it, and only for a while.

Raising an account's epoch (another password, another role, a closed account) ends all of its sessions at once; a single
one that is signed out is remembered as ended for as long as its cookie would hold. Never says what somebody may do.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from itsdangerous import BadSignature, URLSafeTimedSerializer
from starlette.requests import Request
from starlette.responses import Response

from grader.store.people.people import Account

LIFETIME_S = 7 * 24 * 3600
"""A workshop's two days and the week around them; afterwards one signs in again."""
_NAME, _GUEST = "session", "guest"


@dataclass(frozen=True, slots=True)
class Session:
    """What a valid cookie says; whether the account still agrees is asked of the store.

    Attributes:
        nonce: of this one sign-in, what its forgery token is made of.
        provider: id of the provider of sign-on that vouched for them; "": they signed in here.
    """

    person_id: int
    epoch: int
    nonce: str
    provider: str = ""


class Sessions:
    """Writes and reads the two cookies: that of somebody signed in, and that of a guest who has a form open."""

    def __init__(self, secret: str) -> None:
        self._people = URLSafeTimedSerializer(secret, salt="grader.session")
        self._guests = URLSafeTimedSerializer(secret, salt="grader.guest")

    def start(self, response: Response, account: Account, *, secure: bool, provider: str = "") -> None:
        """Sign an account in on the browser that gets this response."""
        nonce = secrets.token_urlsafe(16)
        value = self._people.dumps([account.id, account.session_epoch, nonce, provider])
        _set(response, _NAME, value, secure=secure)
        _drop(response, _GUEST, secure=secure)

    def end(self, response: Response, *, secure: bool) -> None:
        """Sign this browser out; the account's other sessions go on."""
        _drop(response, _NAME, secure=secure)

    def read(self, request: Request, *, secure: bool) -> Session | None:
        """What the session cookie says, or None: there is none, it was tampered with, or it is too old."""
        value = request.cookies.get(_cookie_name(_NAME, secure=secure))
        try:
            fields = self._people.loads(value, max_age=LIFETIME_S) if value else None
        except BadSignature:
            return None
        return None if fields is None else Session(*fields)

    def guest(self, request: Request, *, secure: bool) -> str | None:
        """The nonce of a guest's cookie, or None."""
        value = request.cookies.get(_cookie_name(_GUEST, secure=secure))
        try:
            nonce = self._guests.loads(value, max_age=LIFETIME_S) if value else None
        except BadSignature:
            return None
        return None if nonce is None else str(nonce)

    def start_guest(self, response: Response, nonce: str, *, secure: bool) -> None:
        """Give a guest the cookie that their forms are checked against."""
        _set(response, _GUEST, self._guests.dumps(nonce), secure=secure)


def _cookie_name(name: str, *, secure: bool) -> str:
    # The prefix makes browsers refuse a cookie that another host of the domain planted; it needs HTTPS.
    return f"__Host-{name}" if secure else name


def _set(response: Response, name: str, value: str, *, secure: bool) -> None:
    response.set_cookie(
        _cookie_name(name, secure=secure),
        value,
        max_age=LIFETIME_S,
        path="/",
        secure=secure,
        httponly=True,
        samesite="lax",
    )


def _drop(response: Response, name: str, *, secure: bool) -> None:
    response.delete_cookie(
        _cookie_name(name, secure=secure), path="/", secure=secure, httponly=True, samesite="lax"
    )
