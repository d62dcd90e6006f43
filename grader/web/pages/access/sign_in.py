"""Signing in, with a password or by whoever else vouches for one. A wrong name and a wrong password look the same."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Form, Query, Request
from starlette.responses import RedirectResponse, Response

from grader.store.people.people import Account
from grader.translation import gettext
from grader.web.security.access import MaybeVisitor, Public
from grader.web.security.rate_limits import RateExceeded
from grader.web.security.sign_in import end_present_session, own_place, sign_in, start_session
from grader.web.service import ServiceDep, WebService

router = APIRouter(dependencies=[Public])


@router.get("/sign-in")
def page(
    request: Request,
    service: ServiceDep,
    visitor: MaybeVisitor,
    next_: Annotated[str, Query(alias="next")] = "/",
    signed_out: Annotated[str, Query()] = "",
) -> Response:
    """The ways in; who is signed in already goes on. `signed_out`: the provider that somebody came by before."""
    if visitor is not None:
        return RedirectResponse(own_place(next_), 303)
    left = service.openid_clients.get(signed_out)
    return _form(request, service, next_, left=left.provider if left and left.may_sign_out else None)


@router.post("/sign-in")
def check(
    request: Request,
    service: ServiceDep,
    login: Annotated[str, Form()] = "",
    password: Annotated[str, Form()] = "",
    next_: Annotated[str, Form(alias="next")] = "/",
) -> Response:
    """Sign in and go where one wanted to go."""
    found = sign_in(service, request, login, password)
    if isinstance(found, Account):
        end_present_session(service, request)
        response = RedirectResponse("/password" if found.must_change else own_place(next_), 303)
        start_session(service, request, response, found)
        return response
    if isinstance(found, RateExceeded):
        minutes = max(1, round(found.wait_s / 60))
        error = gettext(
            "Too many wrong tries. Wait {minutes} min, or ask your instructor for a new password."
        ).format(minutes=minutes)
        return _form(
            request, service, next_, 429, {"Retry-After": str(found.wait_s)}, login=login, error=error
        )
    error = gettext(
        "This name and password do not go together. Check both; your instructor can give you a new password."
    )
    return _form(request, service, next_, 401, login=login, error=error)


def _form(
    request: Request,
    service: WebService,
    next_: str,
    status_code: int = 200,
    headers: dict[str, str] | None = None,
    **shown: Any,
) -> Response:
    return service.render(
        request,
        "sign_in.html.j2",
        status_code=status_code,
        headers=headers,
        next=own_place(next_),
        sign_on=service.sign_on,
        **{"login": "", "error": "", "left": None, **shown},
    )
