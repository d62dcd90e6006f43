"""What binds a launch to the browser in which it began: a signed state that travels, and a cookie that stays.

Nothing is kept for it: anybody may begin a launch, and a thousand begun ones cost nothing. Each has a cookie of its
own, so that several tabs do not disturb each other.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass

from itsdangerous import BadSignature, URLSafeTimedSerializer
from starlette.requests import Request
from starlette.responses import Response

from grader.translation import gettext

LIFETIME_S = 600
_SALT = "grader.lti.state"


@dataclass(frozen=True, slots=True)
class LoginState:
    """A launch that has begun: with which platform, and the nonce that its token must bear."""

    platform_id: int
    nonce: str


@dataclass(frozen=True, slots=True)
class BegunLogin:
    """The same, as it leaves: the state for the platform, and what the browser keeps."""

    state: str
    nonce: str
    name: str
    value: str

    def keep(self, response: Response, *, secure: bool) -> None:
        """Let the browser keep its half."""
        cookie = f"{self.name}={self.value}; Max-Age={LIFETIME_S}; Path=/; HttpOnly"
        # The platform's page posts to us, perhaps within a frame of its own: only such a cookie comes along, and
        # browsers take it by HTTPS alone. Python before 3.14 does not know `Partitioned`.
        cookie += "; Secure; SameSite=None; Partitioned" if secure else "; SameSite=Lax"
        response.headers.append("set-cookie", cookie)


def begin_login(secret: str, platform_id: int, *, secure: bool) -> BegunLogin:
    """Begin a launch with a platform."""
    nonce, value = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
    state = URLSafeTimedSerializer(secret, salt=_SALT).dumps([platform_id, nonce, _digest(value)])
    return BegunLogin(state, nonce, _cookie(nonce, secure=secure), value)


def read_state(request: Request, secret: str, state: str, *, secure: bool) -> LoginState | str:
    """The launch that this browser began with that state, or why there is none."""
    try:
        platform_id, nonce, bound = URLSafeTimedSerializer(secret, salt=_SALT).loads(
            state, max_age=LIFETIME_S
        )
    except BadSignature:
        return gettext("This launch was not begun here, or too long ago. Follow the link once more.")
    value = request.cookies.get(_cookie(str(nonce), secure=secure), "")
    if not hmac.compare_digest(_digest(value).encode(), str(bound).encode()):
        return gettext(
            "Your browser kept a cookie back that shows where this launch began. Open the link in a window of its own, "
            "or allow cookies of this site."
        )
    return LoginState(int(platform_id), str(nonce))


def drop_state(response: Response, nonce: str, *, secure: bool) -> None:
    """Let the browser forget its half: the launch is over."""
    cookie = f"{_cookie(nonce, secure=secure)}=; Max-Age=0; Path=/; HttpOnly"
    cookie += "; Secure; SameSite=None; Partitioned" if secure else "; SameSite=Lax"
    response.headers.append("set-cookie", cookie)


def _cookie(nonce: str, *, secure: bool) -> str:
    name = f"lti-{_digest(nonce)[:12]}"
    return f"__Host-{name}" if secure else name


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
