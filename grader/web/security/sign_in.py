"""Signing in with a password: as often as a person mistypes, not as often as a program guesses; and signing out.

Checking a password takes memory and time on purpose; only a few are checked at once, so that a flood of them is slow
for the flood and not for everybody.
"""

from __future__ import annotations

import threading

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from grader.store.people import people, sessions
from grader.store.people.mailboxes import set_language
from grader.store.people.people import Account
from grader.translation import current_language, gettext
from grader.web.security.rate_limits import (
    SIGN_IN_ACCOUNT,
    SIGN_IN_ACCOUNT_AND_ADDRESS,
    SIGN_IN_ADDRESS,
    RateExceeded,
)
from grader.web.security.sessions import LIFETIME_S
from grader.web.service import WebService

# Hashing or checking a password takes 19 MiB each, and a core.
AT_ONCE = threading.BoundedSemaphore(4)


def sign_in(
    service: WebService, request: Request, login: str, password: str
) -> Account | RateExceeded | None:
    """The account that login and password open, None where they open nothing, or a refusal after too many tries.

    For handlers that run in a thread (plain `def`); start the session with `service.sessions.start`.

    Raises:
        HTTPException: passwords open nothing here.
    """
    need_passwords(service)
    address, name = service.address(request), login.strip().casefold()[:200]
    tries = (
        (SIGN_IN_ACCOUNT_AND_ADDRESS, f"{name} {address}"),
        (SIGN_IN_ACCOUNT, name),
        (SIGN_IN_ADDRESS, address),
    )
    for rate, key in tries:
        refused = service.rate_limiter.exceeded(rate, key)
        if refused is not None:
            return refused
    # Counted before the check, so that many at once are counted, too.
    for rate, key in tries:
        service.rate_limiter.hit(rate, key)
    with AT_ONCE:
        account = people.check_password(service.store, login, password)
    if account is not None:
        service.rate_limiter.clear(SIGN_IN_ACCOUNT_AND_ADDRESS, f"{name} {address}")
        people.signed_in(service.store, account.id)
    return account


def need_passwords(service: WebService) -> None:
    """Go on only where passwords of ours open anything.

    Raises:
        HTTPException: they do not.
    """
    if not service.sign_on.local_passwords:
        titles = gettext(" or ").join(one.title for one in service.sign_on.providers)
        text = gettext(
            "Passwords of this grader open nothing. Sign in with {titles}; programs have a token, which you make on "
            "your account page."
        )
        raise HTTPException(403, text.format(titles=titles))


def password_problem(password: str) -> str:
    """What is wrong with a password that was refused, for whoever chose it."""
    if people.MIN_PASSWORD <= len(password) <= people.MAX_PASSWORD:
        return gettext("This password holds characters that nobody could type again.")
    text = gettext("A password has {least} to {most} characters.")
    return text.format(least=people.MIN_PASSWORD, most=people.MAX_PASSWORD)


def own_place(place: str) -> str:
    """A page of this service: no other host, and nothing that a browser would read as one."""
    plain = place.startswith("/") and not place.startswith(("//", "/\\")) and place.isprintable()
    return place if plain and "\\" not in place else "/"


def start_session(
    service: WebService, request: Request, response: Response, account: Account, *, provider: str = ""
) -> None:
    """Sign an account in on the browser that gets this response; its first page says in which language to mail it.

    `provider`: id of whoever vouched for them; "": a password of ours did.
    """
    service.sessions.start(response, account, secure=service.secure(request), provider=provider)
    set_language(service.store, account.id, current_language(), unless_known=True)


def end_present_session(service: WebService, request: Request) -> None:
    """End the session that this request's cookie names, if any: on signing out, and where another takes its place."""
    session = service.sessions.read(request, secure=service.secure(request))
    if session is not None:
        sessions.end_session(service.store, session.nonce, lifetime_s=LIFETIME_S)
