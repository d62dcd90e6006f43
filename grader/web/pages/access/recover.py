"""Coming in by a link of `grader recover`: once, and only by a button, so that nothing that looks ahead uses it up."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Query, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from grader.store.people import people, sessions
from grader.store.people.people import Account
from grader.translation import gettext
from grader.web import flash
from grader.web.security.access import Public
from grader.web.security.recovery import LIFETIME_S, RecoveryKeys
from grader.web.security.sessions import Session
from grader.web.security.sign_in import end_present_session, start_session
from grader.web.service import ServiceDep, WebService

router = APIRouter(dependencies=[Public])


@router.get("/recover")
def show(request: Request, service: ServiceDep, key: Annotated[str, Query()] = "") -> Response:
    """Whose account it is, and the button."""
    account, _ = _opened(service, key)
    return service.render(request, "recover.html.j2", account=account, key=key)


@router.post("/recover")
def enter(request: Request, service: ServiceDep, key: Annotated[str, Form()] = "") -> Response:
    """Sign in; the link opens nothing any more."""
    account, session = _opened(service, key)
    sessions.end_session(service.store, session.nonce, lifetime_s=LIFETIME_S)
    people.signed_in(service.store, account.id)
    end_present_session(service, request)
    response = flash.redirect("/account", service.secret, gettext("You are in. The link works no more."))
    start_session(service, request, response, account)
    return response


def _opened(service: WebService, key: str) -> tuple[Account, Session]:
    session = RecoveryKeys(service.secret).read(key)
    account = (
        None
        if session is None
        else sessions.account_in_session(service.store, session.person_id, session.epoch, session.nonce)
    )
    if session is None or account is None:
        raise HTTPException(
            403,
            gettext(
                "This link was used, is older than half an hour, or is not whole. `grader recover` makes another."
            ),
        )
    return account, session
