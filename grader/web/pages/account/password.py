"""Choosing a password: at will, or because the one in use was handed out to be used once."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Request
from starlette.responses import Response

from grader.errors import UsageError
from grader.store.people import people
from grader.store.people.people import Account
from grader.translation import gettext
from grader.web import flash
from grader.web.security.access import SignedIn, Visitor
from grader.web.security.rate_limits import RateExceeded
from grader.web.security.sign_in import AT_ONCE, need_passwords, password_problem, sign_in, start_session
from grader.web.service import ServiceDep, WebService

router = APIRouter()


@router.get("/password")
def page(request: Request, service: ServiceDep, visitor: SignedIn) -> Response:
    """The form."""
    need_passwords(service)
    return _form(request, service, visitor, {})


@router.post("/password")
def change(
    request: Request,
    service: ServiceDep,
    visitor: SignedIn,
    current: Annotated[str, Form()] = "",
    new: Annotated[str, Form()] = "",
    again: Annotated[str, Form()] = "",
) -> Response:
    """Change it and end all other sessions and all tokens; this browser stays signed in."""
    need_passwords(service)
    account = visitor.account
    # Who has a one-time password typed it a moment ago.
    if not account.must_change:
        known = sign_in(service, request, account.login, current)
        if isinstance(known, RateExceeded):
            wait = gettext("Too many wrong tries. Wait {minutes} min.").format(
                minutes=max(1, round(known.wait_s / 60))
            )
            return _form(request, service, visitor, {"current": wait}, 429)
        if not isinstance(known, Account):
            return _form(
                request, service, visitor, {"current": gettext("This is not your present password.")}, 422
            )
    if new != again:
        return _form(
            request,
            service,
            visitor,
            {"again": gettext("The two are not the same. Type the new one twice.")},
            422,
        )
    try:
        with AT_ONCE:
            people.set_password(service.store, account.id, new, must_change=False, actor_id=account.id)
    except UsageError:
        return _form(request, service, visitor, {"new": password_problem(new)}, 422)
    response = flash.redirect(
        "/",
        service.secret,
        gettext("Your password is changed. Other browsers are signed out, and your tokens have ended."),
    )
    fresh = people.account(service.store, account.id)
    if fresh is not None:
        start_session(service, request, response, fresh)
    return response


def _form(
    request: Request, service: WebService, visitor: Visitor, errors: dict[str, str], status_code: int = 200
) -> Response:
    return service.render(
        request,
        "password.html.j2",
        visitor=visitor,
        status_code=status_code,
        errors=errors,
        least=people.MIN_PASSWORD,
    )
