"""Signing this browser out. Signing out everywhere is on the account's page.

Who came by a provider of sign-on is shown the way out there as well: on a shared machine the next one would be let in.
"""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from grader.translation import gettext
from grader.web import flash
from grader.web.security.access import SignedIn
from grader.web.security.sign_in import end_present_session
from grader.web.service import ServiceDep

router = APIRouter()


@router.post("/sign-out")
def sign_out(request: Request, service: ServiceDep, _visitor: SignedIn) -> Response:
    """End this browser's session, on the server as well: a copy of its cookie opens nothing any more."""
    session = service.sessions.read(request, secure=service.secure(request))
    provider = service.sign_on.provider(session.provider) if session is not None else None
    end_present_session(service, request)
    place = "/sign-in" if provider is None else f"/sign-in?signed_out={provider.id}"
    response = flash.redirect(place, service.secret, gettext("You are signed out."))
    service.sessions.end(response, secure=service.secure(request))
    return response
